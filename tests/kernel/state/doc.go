// Package state tests what a running kernel of a node lets programs do, and what not.
package state
