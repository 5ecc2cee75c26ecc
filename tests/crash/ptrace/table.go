//go:build linux && (amd64 || arm64)

package ptrace

import "golang.org/x/sys/unix"

// descriptor marks a rule without a path argument: the call works on an open
// file. none marks an argument that the call does not have.
const (
	descriptor = -2
	none       = -1
)

// rule tells where a system call keeps its arguments. dir and path (newDir
// and newPath) are argument numbers; dir is none where paths are relative to
// the working directory. fd is the argument number of the descriptor where
// path is descriptor.
type rule struct {
	name            string
	op              Op
	dir, path       int
	newDir, newPath int
	fd              int
}

// onFile is the rule of a call that changes the open file in argument fd.
func onFile(name string, op Op, fd int) rule {
	return rule{name: name, op: op, dir: none, path: descriptor, newDir: none, newPath: none, fd: fd}
}

// onPath is the rule of a call that names one file.
func onPath(name string, op Op, dir, path int) rule {
	return rule{name: name, op: op, dir: dir, path: path, newDir: none, newPath: none, fd: none}
}

// onPaths is the rule of a call that names two files.
func onPaths(name string, op Op, dir, path, newDir, newPath int) rule {
	return rule{name: name, op: op, dir: dir, path: path, newDir: newDir, newPath: newPath, fd: none}
}

// rules lists the calls that both architectures have, and legacyRules those
// that only the older one has. Shared writable mappings are not seen.
func rules() map[int]rule {
	table := map[int]rule{
		unix.SYS_OPENAT:  onPath("openat", OpOpen, 0, 1),
		unix.SYS_OPENAT2: onPath("openat2", OpOpen, 0, 1),

		unix.SYS_WRITE:           onFile("write", OpWrite, 0),
		unix.SYS_WRITEV:          onFile("writev", OpWrite, 0),
		unix.SYS_PWRITE64:        onFile("pwrite64", OpWrite, 0),
		unix.SYS_PWRITEV:         onFile("pwritev", OpWrite, 0),
		unix.SYS_PWRITEV2:        onFile("pwritev2", OpWrite, 0),
		unix.SYS_SENDFILE:        onFile("sendfile", OpWrite, 0),
		unix.SYS_SPLICE:          onFile("splice", OpWrite, 2),
		unix.SYS_COPY_FILE_RANGE: onFile("copy_file_range", OpWrite, 2),

		unix.SYS_FTRUNCATE: onFile("ftruncate", OpTruncate, 0),
		unix.SYS_FALLOCATE: onFile("fallocate", OpTruncate, 0),
		unix.SYS_TRUNCATE:  onPath("truncate", OpTruncate, none, 0),

		unix.SYS_FSYNC:     onFile("fsync", OpSync, 0),
		unix.SYS_FDATASYNC: onFile("fdatasync", OpSync, 0),
		unix.SYS_SYNCFS:    onFile("syncfs", OpSyncAll, 0),
		unix.SYS_SYNC:      {name: "sync", op: OpSyncAll, dir: none, path: none, newDir: none, newPath: none, fd: none},

		unix.SYS_RENAMEAT:  onPaths("renameat", OpRename, 0, 1, 2, 3),
		unix.SYS_RENAMEAT2: onPaths("renameat2", OpRename, 0, 1, 2, 3),
		unix.SYS_LINKAT:    onPaths("linkat", OpLink, 0, 1, 2, 3),
		unix.SYS_SYMLINKAT: onPath("symlinkat", OpSymlink, 1, 2),
		unix.SYS_UNLINKAT:  onPath("unlinkat", OpUnlink, 0, 1),
		unix.SYS_MKDIRAT:   onPath("mkdirat", OpMkdir, 0, 1),
		unix.SYS_MKNODAT:   onPath("mknodat", OpMknod, 0, 1),

		unix.SYS_FCHMOD:    onFile("fchmod", OpAttributes, 0),
		unix.SYS_FCHMODAT:  onPath("fchmodat", OpAttributes, 0, 1),
		unix.SYS_FCHMODAT2: onPath("fchmodat2", OpAttributes, 0, 1),
		unix.SYS_FCHOWN:    onFile("fchown", OpAttributes, 0),
		unix.SYS_FCHOWNAT:  onPath("fchownat", OpAttributes, 0, 1),
		unix.SYS_UTIMENSAT: onPath("utimensat", OpAttributes, 0, 1),
	}
	for number, r := range legacyRules() {
		table[number] = r
	}
	return table
}
