package state

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"powercloud.unidatum.com/go/image/uki"
	"powercloud.unidatum.com/tools/lint"
)

// onNode skips a test that does not run as the first program's child in a machine with
// the kernel that is tested.
func onNode(t *testing.T) {
	t.Helper()
	if os.Getenv("KERNEL_STATE") == "" {
		t.Skip("it looks at the kernel that it runs on: bazel test //tests/kernel/state:all")
	}
}

// read reads a file of the kernel's.
func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(content))
}

func TestLockdown(t *testing.T) {
	onNode(t)
	folder := t.TempDir()
	if err := unix.Mount("securityfs", folder, "securityfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(folder, 0)
	file := folder + "/lockdown"
	if state := read(t, file); !strings.Contains(state, "[confidentiality]") {
		t.Errorf("the lockdown is %q", state)
	}
	if err := os.WriteFile(file, []byte("none"), 0); err == nil {
		t.Error("the lockdown could be lifted")
	}
	if state := read(t, file); !strings.Contains(state, "[confidentiality]") {
		t.Errorf("after an attempt to lift it, the lockdown is %q", state)
	}
}

// TestAbsent looks for what would let root change the kernel or read its memory.
func TestAbsent(t *testing.T) {
	onNode(t)
	for _, path := range []string{"/proc/modules", "/proc/kcore", "/dev/mem", "/dev/port", "/dev/kmem",
		"/sys/kernel/debug", "/sys/kernel/tracing", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/kexec_load_disabled",
		"/proc/sys/fs/binfmt_misc", "/proc/sysrq-trigger", "/proc/swaps", "/proc/self/ns/user", "/sys/power/disk"} {
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("there is %s: %v", path, err)
		}
	}
}

// TestCalls tries system calls that the kernel must not have.
func TestCalls(t *testing.T) {
	onNode(t)
	for name, number := range map[string]uintptr{
		"init_module": unix.SYS_INIT_MODULE, "finit_module": unix.SYS_FINIT_MODULE, "delete_module": unix.SYS_DELETE_MODULE,
		"kexec_load": unix.SYS_KEXEC_LOAD, "kexec_file_load": unix.SYS_KEXEC_FILE_LOAD, "io_uring_setup": unix.SYS_IO_URING_SETUP,
		"userfaultfd": unix.SYS_USERFAULTFD, "process_vm_readv": unix.SYS_PROCESS_VM_READV, "kcmp": unix.SYS_KCMP, "swapon": unix.SYS_SWAPON,
	} {
		if _, _, errno := unix.Syscall6(number, 0, 0, 0, 0, 0, 0); errno != unix.ENOSYS {
			t.Errorf("%s: %v, want %v", name, errno, unix.ENOSYS)
		}
	}
	if err := unix.Unshare(unix.CLONE_NEWUSER); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a user namespace: %v, want %v", err, syscall.EINVAL)
	}
}

// TestCommandLine looks for the command line that is built in: kernel_test starts
// the kernel with another one. Then it tries to change it.
func TestCommandLine(t *testing.T) {
	onNode(t)
	var files []string
	for _, name := range []string{"command_line_" + runtime.GOARCH + ".txt", "command_line.txt"} {
		file, err := lint.Runfile("disk/" + name)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	want, err := uki.ReadCommandLine(files...)
	if err != nil {
		t.Fatal(err)
	}
	before := read(t, "/proc/cmdline")
	if before != want {
		t.Errorf("the command line is %q, want %q", before, want)
	}
	if err := os.WriteFile("/proc/cmdline", []byte("init=/bin/sh"), 0); err == nil {
		t.Error("/proc/cmdline could be written to")
	}
	if after := read(t, "/proc/cmdline"); after != before {
		t.Errorf("the command line was %q and is %q", before, after)
	}
}

// TestPrograms looks at what protects the kernel from programs.
func TestPrograms(t *testing.T) {
	onNode(t)
	for path, want := range map[string]string{
		"/proc/sys/kernel/dmesg_restrict":            "1",
		"/proc/sys/kernel/unprivileged_bpf_disabled": "2",
		"/proc/sys/kernel/panic_on_oops":             "1",
		"/proc/sys/kernel/randomize_va_space":        "2",
		"/sys/module/page_alloc/parameters/shuffle":  "Y",
	} {
		if got := read(t, path); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
}
