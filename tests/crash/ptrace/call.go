//go:build linux && (amd64 || arm64)

package ptrace

import "fmt"

// Op says what a system call does to the file system.
type Op uint8

// The operations. Several system calls may stand for one of them: a write is
// write, pwrite64, writev and others.
const (
	OpOpen     Op = iota + 1 // open for writing, or creating a file
	OpWrite                  // writes into a regular file
	OpTruncate               // changes a file's length, or allocates space
	OpSync                   // fsync or fdatasync of Path
	OpSyncAll                // sync or syncfs
	OpRename                 // Path becomes NewPath
	OpLink                   // NewPath becomes another name of Path
	OpSymlink                // Path is the new link's own name
	OpUnlink                 // removes a file's name
	OpMkdir
	OpRmdir
	OpMknod
	OpAttributes // mode, owner, times
)

// Call is one system call that changes the file system.
type Call struct {
	Name     string // the system call's own name, such as "renameat2"
	Op       Op
	PID      int    // the thread that makes it
	FD       int    // the descriptor that it works on, or -1
	Path     string // absolute, unless it could not be resolved; symbolic links are kept
	NewPath  string // of OpRename and OpLink
	Create   bool   // of OpOpen: O_CREAT was given
	Truncate bool   // of OpOpen: O_TRUNC was given
}

// String is the call in one line, for messages.
func (c Call) String() string {
	if c.NewPath != "" {
		return fmt.Sprintf("%s %s -> %s", c.Name, c.Path, c.NewPath)
	}
	return c.Name + " " + c.Path
}
