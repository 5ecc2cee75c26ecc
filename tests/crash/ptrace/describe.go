//go:build linux && (amd64 || arm64)

package ptrace

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// describe finds out what a call is about to do. It reports false for calls
// that do not change the file system: opens for reading, writes to pipes.
func (t *tracer) describe(tid int, info callInfo) (Call, bool) {
	r, ok := t.rules[int(info.number)]
	if !ok {
		return Call{}, false
	}
	call := Call{Name: r.name, Op: r.op, PID: tid, FD: -1}
	switch r.path {
	case none:
		return call, true
	case descriptor:
		call.FD = int(int32(info.args[r.fd]))
		call.Path = descriptorPath(tid, call.FD)
		if r.op == OpWrite {
			st, err := os.Stat(fmt.Sprintf("/proc/%d/fd/%d", tid, call.FD))
			if err != nil || !st.Mode().IsRegular() {
				return Call{}, false
			}
		}
		return call, true
	}
	if r.op == OpOpen {
		flags := openFlags(tid, r.name, info)
		if flags&(unix.O_WRONLY|unix.O_RDWR|unix.O_CREAT|unix.O_TRUNC) == 0 {
			return Call{}, false
		}
		call.Create = flags&unix.O_CREAT != 0
		call.Truncate = flags&unix.O_TRUNC != 0
	}
	call.Path = argumentPath(tid, info, r.dir, r.path)
	if r.newPath != none {
		call.NewPath = argumentPath(tid, info, r.newDir, r.newPath)
	}
	if r.name == "unlinkat" && info.args[2]&unix.AT_REMOVEDIR != 0 {
		call.Op = OpRmdir
	}
	return call, true
}

// openFlags reads the flags of an open, which openat2 keeps in memory.
func openFlags(tid int, name string, info callInfo) uint64 {
	switch name {
	case "creat":
		return unix.O_CREAT | unix.O_WRONLY | unix.O_TRUNC
	case "open":
		return info.args[1]
	case "openat":
		return info.args[2]
	}
	how := readMemory(tid, uintptr(info.args[2]), 8)
	if len(how) < 8 {
		return unix.O_RDWR // unknown: count it rather than miss it
	}
	var flags uint64
	for i := 7; i >= 0; i-- {
		flags = flags<<8 | uint64(how[i])
	}
	return flags
}

// argumentPath resolves a path argument against its directory argument.
func argumentPath(tid int, info callInfo, dir, path int) string {
	name := readString(tid, uintptr(info.args[path]))
	if filepath.IsAbs(name) {
		return name
	}
	base := ""
	if dir == none || int32(info.args[dir]) == unix.AT_FDCWD {
		base, _ = os.Readlink(fmt.Sprintf("/proc/%d/cwd", tid))
	} else {
		base = descriptorPath(tid, int(int32(info.args[dir])))
	}
	if name == "" {
		return base // AT_EMPTY_PATH
	}
	return filepath.Join(base, name)
}

// descriptorPath is the name that the kernel has for an open file.
func descriptorPath(tid, fd int) string {
	path, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", tid, fd))
	if err != nil {
		return fmt.Sprintf("descriptor %d", fd)
	}
	return path
}

// readString reads a NUL-terminated string of at most PATH_MAX bytes, a page
// at a time because the next page may not be mapped.
func readString(tid int, address uintptr) string {
	page := uintptr(os.Getpagesize())
	var s []byte
	for len(s) < unix.PathMax {
		part := readMemory(tid, address, int(page-address%page))
		if end := bytes.IndexByte(part, 0); end >= 0 {
			return string(append(s, part[:end]...))
		}
		if len(part) == 0 {
			break
		}
		s = append(s, part...)
		address += uintptr(len(part))
	}
	return string(s)
}

// readMemory reads size bytes of the program's memory, or as many as there are.
func readMemory(tid int, address uintptr, size int) []byte {
	buf := make([]byte, size)
	local := []unix.Iovec{{Base: &buf[0]}}
	local[0].SetLen(size)
	n, err := unix.ProcessVMReadv(tid, local, []unix.RemoteIovec{{Base: address, Len: size}}, 0)
	if err != nil || n < 0 {
		return nil
	}
	return buf[:n]
}
