// Package ptrace runs a program and stops it at every system call that
// changes the file system, so that a test can kill it there or write down
// the order of its calls.
//
// The program is started through a launcher that installs a seccomp filter:
// only the calls in the table stop, everything else runs at full speed. All
// threads and children are followed. A program that calls [Run] must call
// [Launcher] first thing in main or TestMain, because the launcher is that
// program itself, started again.
//
// It works on linux/amd64 and linux/arm64 and is empty elsewhere.
package ptrace
