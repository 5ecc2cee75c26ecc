//go:build !linux

package transcripts

// systemPrograms are none: only Linux has pcd and networks for single programs.
var systemPrograms = map[string]func(){}
