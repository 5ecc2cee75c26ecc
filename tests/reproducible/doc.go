// Package reproducible tests that the same source tree, built twice in
// different places, gives the same bytes.
package reproducible
