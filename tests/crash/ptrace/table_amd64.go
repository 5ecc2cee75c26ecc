//go:build linux

package ptrace

import "golang.org/x/sys/unix"

// auditArch is the architecture's name in a seccomp filter.
const auditArch = unix.AUDIT_ARCH_X86_64

// legacyRules are the calls without a directory descriptor.
func legacyRules() map[int]rule {
	return map[int]rule{
		unix.SYS_OPEN:      onPath("open", OpOpen, none, 0),
		unix.SYS_CREAT:     onPath("creat", OpOpen, none, 0),
		unix.SYS_RENAME:    onPaths("rename", OpRename, none, 0, none, 1),
		unix.SYS_LINK:      onPaths("link", OpLink, none, 0, none, 1),
		unix.SYS_SYMLINK:   onPath("symlink", OpSymlink, none, 1),
		unix.SYS_UNLINK:    onPath("unlink", OpUnlink, none, 0),
		unix.SYS_RMDIR:     onPath("rmdir", OpRmdir, none, 0),
		unix.SYS_MKDIR:     onPath("mkdir", OpMkdir, none, 0),
		unix.SYS_MKNOD:     onPath("mknod", OpMknod, none, 0),
		unix.SYS_CHMOD:     onPath("chmod", OpAttributes, none, 0),
		unix.SYS_CHOWN:     onPath("chown", OpAttributes, none, 0),
		unix.SYS_LCHOWN:    onPath("lchown", OpAttributes, none, 0),
		unix.SYS_UTIME:     onPath("utime", OpAttributes, none, 0),
		unix.SYS_UTIMES:    onPath("utimes", OpAttributes, none, 0),
		unix.SYS_FUTIMESAT: onPath("futimesat", OpAttributes, 0, 1),
	}
}
