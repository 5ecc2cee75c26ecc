// Package selftest has no code: its tests start machines of every kind that
// package machine knows, with a distribution's kernel and a small program as
// its init, so that they need nothing of the system that is built here.
package selftest
