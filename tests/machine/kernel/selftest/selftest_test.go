package selftest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// inMachine skips the test unless it runs in a machine.
func inMachine(t *testing.T) {
	t.Helper()
	if os.Getenv("KERNEL_SELFTEST") == "" {
		t.Skip("it runs in a virtual machine: bazel test //tests/machine/kernel/selftest:all")
	}
}

// TestSurroundings looks at what a test may count on.
func TestSurroundings(t *testing.T) {
	inMachine(t)
	if first, err := os.Readlink("/proc/1/exe"); os.Getuid() != 0 || first != "/init" {
		t.Errorf("it is user %d, and the first program is %s, %v", os.Getuid(), first, err)
	}
	if content, err := os.ReadFile("testdata/file.txt"); err != nil || string(content) != "a file of the test\n" {
		t.Errorf("its own file has %q, %v", content, err)
	}
	for _, path := range []string{"/proc/self", "/sys/kernel", "/sys/fs/cgroup/cgroup.procs", "/dev/null", os.Getenv("TEST_TMPDIR")} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	connection, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = connection.Close() // It was only there to be made.
}

// TestRoot does what only root can.
func TestRoot(t *testing.T) {
	inMachine(t)
	folder := t.TempDir()
	if err := unix.Mount("tmpfs", folder, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "file"), make([]byte, 2<<20), 0o600); err == nil {
		t.Error("2 MiB fit into 1 MiB")
	}
	if err := unix.Unmount(folder, 0); err != nil {
		t.Error(err)
	}
}

// TestOutput prints much, which must all arrive.
func TestOutput(t *testing.T) {
	inMachine(t)
	for i := range 2000 {
		fmt.Printf("line %d of many that are printed\n", i)
	}
}

// TestAsked does badly what the variable asks for, so that a test on the host
// can see how that is reported.
func TestAsked(t *testing.T) {
	switch os.Getenv("KERNEL_SELFTEST") {
	case "fail":
		t.Error("it was asked to fail")
	case "panic":
		if err := os.WriteFile("/proc/sysrq-trigger", []byte("c"), 0); err != nil {
			t.Error(err)
		}
	case "kill":
		if err := unix.Kill(os.Getpid(), unix.SIGKILL); err != nil {
			t.Error(err)
		}
	case "hang":
		if err := unix.Pause(); err != nil {
			t.Error(err)
		}
	}
}
