// Package model tests the store against a simple model of what it promises: many
// random sequences of commands, by several clients, at locations that fail, lie,
// stall, fill up, come back old or vanish. Some locations are erasure-coded sets, whose
// parts do all that by themselves.
package model
