//go:build linux && (amd64 || arm64)

package ptrace

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// launcherName is the launcher's argument 0. Its further arguments are the
// working directory, the program's path, and the program's arguments with its
// own argument 0.
const launcherName = "powercloud-ptrace-launcher"

// Launcher becomes the program to be traced when [Run] has started this
// process for that, and returns at once otherwise.
func Launcher() {
	if len(os.Args) < 4 || os.Args[0] != launcherName {
		return
	}
	err := launch(os.Args[1], os.Args[2], os.Args[3:])
	fmt.Fprintf(os.Stderr, "ptrace: starting %s: %v\n", os.Args[2], err)
	os.Exit(127)
}

// launch installs the filter on this thread, which exec then makes the only
// one. It returns only if that failed.
func launch(dir, path string, args []string) error {
	runtime.LockOSThread()
	if err := os.Chdir(dir); err != nil {
		return err
	}
	filter := filterProgram(rules())
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("setting no_new_privs: %w", err)
	}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return fmt.Errorf("installing the seccomp filter: %w", errno)
	}
	return syscall.Exec(path, args, os.Environ())
}

// filterProgram is a BPF program that hands the calls of the table to the
// tracer and allows every other.
func filterProgram(table map[int]rule) []unix.SockFilter {
	const (
		load   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		answer = unix.BPF_RET | unix.BPF_K
		// Offsets in struct seccomp_data.
		offsetNumber = 0
		offsetArch   = 4
	)
	numbers := make([]int, 0, len(table))
	for number := range table {
		numbers = append(numbers, number)
	}
	sort.Ints(numbers)

	program := []unix.SockFilter{
		{Code: load, K: offsetArch},
		{Code: equal, K: auditArch, Jt: 1},
		{Code: answer, K: unix.SECCOMP_RET_ALLOW},
		{Code: load, K: offsetNumber},
	}
	for i, number := range numbers {
		program = append(program, unix.SockFilter{Code: equal, K: uint32(number), Jt: uint8(len(numbers) - i)})
	}
	return append(program,
		unix.SockFilter{Code: answer, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: answer, K: unix.SECCOMP_RET_TRACE})
}
