package dir

import "golang.org/x/sys/unix"

// zfsMagic is the one of OpenZFS, which isn't part of Linux: ZFS_SUPER_MAGIC in its
// include/sys/fs/zfs.h.
const zfsMagic = 0x2fc12fc1

// exactTimes reports whether a folder is on a file system of this machine that
// gives every change of a folder's entries a time. Others, as those that another
// machine serves, may forget that or answer with what they knew a minute ago.
func exactTimes(fd int) bool {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return false
	}
	switch uint32(st.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC, zfsMagic:
		return true
	}
	return false
}
