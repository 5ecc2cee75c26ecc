package selftest

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"powercloud.unidatum.com/tests/built"
	"powercloud.unidatum.com/tests/machine"
)

// TestARM64 starts a kernel for arm64 by its firmware, with ACPI, a TPM
// and a monitor.
func TestARM64(t *testing.T) {
	ctx := machine.Patient(t)
	linux := kernel(t, machine.ARM64)
	linux.CommandLine += " acpi=force"
	m := machine.Start(ctx, t, machine.Config{Architecture: machine.ARM64, Kernel: linux, TPM: true, Monitor: true})
	m.Expect(ctx, `guest: acpi yes`)
	m.Expect(ctx, `guest: ready 6\.1\.0-\d+-cloud-arm64`)
	m.Type("poweroff")
	m.Wait(ctx)
}

// killedVariable has this test program start a machine and wait to be killed.
const killedVariable = "MACHINE_SELFTEST_KILLED"

// TestKilledTestLeavesNoProcess kills a test in the middle. Its QEMU and its
// swtpm must go with it.
func TestKilledTestLeavesNoProcess(t *testing.T) {
	ctx := machine.Patient(t)
	built.Path(t, "GUEST_AMD64") // Where Bazel has built this, it has unpacked QEMU too.
	if os.Getenv(killedVariable) != "" {
		machine.Start(ctx, t, machine.Config{TPM: true})
		os.Stdout.WriteString("\nstarted\n")
		<-ctx.Done()
		return
	}
	command := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestKilledTestLeavesNoProcess$")
	command.Env = append(os.Environ(), killedVariable+"=1", "GO_TEST_WRAP=0")
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	said := []string{}
	lines := bufio.NewScanner(output)
	for lines.Scan() && lines.Text() != "started" {
		said = append(said, lines.Text())
	}
	children := children(t, command.Process.Pid)
	if err := errors.Join(command.Process.Kill(), lines.Err()); err != nil {
		t.Error(err)
	}
	if err := command.Wait(); err == nil {
		t.Error("it ended well, though it was killed")
	}
	if len(children) != 2 {
		t.Fatalf("it had the child processes %v instead of two; it said %q", children, said)
	}
	for _, child := range children {
		waitGone(ctx, t, child)
	}
}

// children lists the processes whose parent is this one.
func children(t *testing.T, parent int) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, entry := range entries {
		process, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if state, above := status(process); state != "" && above == parent {
			found = append(found, process)
		}
	}
	return found
}

// status returns the state of a process and its parent, or nothing where it is
// gone.
func status(process int) (state string, parent int) {
	content, err := os.ReadFile("/proc/" + strconv.Itoa(process) + "/stat")
	if err != nil {
		return "", 0
	}
	// The program's name, which may hold anything, is in parentheses.
	fields := strings.Fields(string(content[strings.LastIndexByte(string(content), ')')+1:]))
	parent, _ = strconv.Atoi(fields[1])
	return fields[0], parent
}

// waitGone waits until a process is gone, or dead and nobody has asked how.
func waitGone(ctx context.Context, t *testing.T, process int) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		if state, _ := status(process); state == "" || state == "Z" || state == "X" {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			_ = syscall.Kill(process, syscall.SIGKILL) // The test has failed; at least leave nothing.
			t.Fatalf("the process %d is still there: %v", process, context.Cause(ctx))
		}
	}
}

// TestImage looks at what the rule vm_test gives a test.
func TestImage(t *testing.T) {
	path, architecture := machine.Image(t)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// Every EFI file begins so.
	if !strings.HasPrefix(string(content), "MZ") || architecture != machine.AMD64 {
		t.Errorf("it is for %s, and begins with %q", architecture, content[:2])
	}
}
