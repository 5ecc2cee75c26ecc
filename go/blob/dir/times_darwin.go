package dir

import "golang.org/x/sys/unix"

// exactTimes reports whether a folder is on a file system of this machine that
// gives every change of a folder's entries a time.
func exactTimes(fd int) bool {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return false
	}
	return unix.ByteSliceToString(st.Fstypename[:]) == "apfs"
}
