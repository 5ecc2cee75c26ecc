// Package boot tests that nodes' disk images start: from every kind of disk, with
// every kind of network card, on both architectures.
package boot
