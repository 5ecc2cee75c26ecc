//go:build !linux

package keys

// preferHugePages does nothing where the system decides by itself.
func preferHugePages(int) {}
