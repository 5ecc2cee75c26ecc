// Package powercut keeps what a power cut would leave of a directory that a
// traced program works on.
//
// The model is the weakest that POSIX allows: a file's content lasts as it
// was at its last fsync, a name lasts once its directory was synced, and
// names that were not synced may each be there or not.
//
// Like package ptrace, whose calls it follows, it is empty but on
// linux/amd64 and linux/arm64.
package powercut
