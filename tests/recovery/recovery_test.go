package recovery

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"powercloud.unidatum.com/go/sys/pstore"
	"powercloud.unidatum.com/tests/built"
	"powercloud.unidatum.com/tests/machine"
	"powercloud.unidatum.com/tests/node"
)

// bootFolder is a folder with the node's EFI file where firmware looks for it.
func bootFolder(t *testing.T) string {
	t.Helper()
	content := built.Content(t, "SABOTEUR_EFI")
	folder := t.TempDir()
	target := filepath.Join(folder, "EFI", "BOOT", "BOOTX64.EFI")
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(target, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

// startedFrom is where the EFI file writes from which partition it was started.
const startedFrom = "/sys/firmware/efi/efivars/LoaderDevicePartUUID-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"

// TestMoved starts one disk, with what was written to it before, behind every
// controller. OVMF has no driver for MegaRAID and PVSCSI, whose real cards bring one
// along: there it starts from another disk.
func TestMoved(t *testing.T) {
	folder := bootFolder(t)
	config := sabotaged(t)
	config.Disks[0].Boot = 1
	config.Disks = append(config.Disks, machine.Disk{Folder: folder, ReadOnly: true, Boot: 2})
	m := machine.New(machine.Patient(t), t, config)
	first := ""
	for i, to := range []struct {
		controller machine.Controller
		device     string
		driver     bool
	}{
		{machine.VirtioBlock, "/dev/vd", true},
		{machine.VirtioSCSI, "/dev/sd", true},
		{machine.NVMe, "/dev/nvme", true},
		{machine.AHCI, "/dev/sd", true},
		{machine.MegaSAS, "/dev/sd", false},
		{machine.PVSCSI, "/dev/sd", false},
	} {
		ctx := machine.Patient(t)
		m.Move(0, to.controller)
		m.PowerOn(ctx)
		node.ExpectBanner(ctx, m)
		// The other disk has no GPT, and its partitions no identifier.
		from, found := ask(t, m, "read %s", startedFrom)
		if i == 0 {
			first = from
		}
		if found != to.driver || found && from != first {
			t.Errorf("behind %s it started from %s, and at first from %s", to.controller, from, first)
		}
		device, number, _ := strings.Cut(tell(t, m, "count"), " ")
		if !strings.HasPrefix(device, to.device) || number != strconv.Itoa(i+1) {
			t.Errorf("behind %s it counted %s on %s, want %d on %s...", to.controller, number, device, i+1, to.device)
		}
		m.PowerOff()
	}
}

// TestPcdKilled has pcd killed, and come back. The next boots know of it, and of a panic
// beside it.
func TestPcdKilled(t *testing.T) {
	ctx := machine.Patient(t)
	m := start(ctx, t, sabotaged(t))
	for range 2 {
		tell(t, m, "signal pcd %d", unix.SIGKILL)
		m.Expect(ctx, `pcd was killed by .* will be started again`)
		m.Expect(ctx, `pcd is ready`)
		m.Expect(ctx, `is waiting to be enrolled`)
	}
	if words := tell(t, m, "read /proc/1/comm"); words != `"init\n"` {
		t.Errorf("PID 1 is %s", words)
	}
	ctx = machine.Patient(t)
	m.Reset(ctx)
	m.WaitReset(ctx)
	expectSaved(ctx, t, m, 0)
	ctx = machine.Patient(t)
	order(t, m, "signal 1 %d", unix.SIGABRT)
	m.WaitReset(ctx)
	expectSaved(ctx, t, m, 1)
}

// expectSaved expects that a boot finds the last words of pcd's from its first crash, and
// panics of the kernel.
func expectSaved(ctx context.Context, t *testing.T, m *machine.Machine, panics int) {
	t.Helper()
	m.Expect(ctx, `pcd had crashed in an earlier boot" said="pcd was killed by `)
	m.Expect(ctx, `is waiting to be enrolled`)
	var dumps []pstore.Dump
	if err := json.Unmarshal([]byte(content(t, m, "/run/powercloud/"+pstore.KeptName)), &dumps); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, d := range dumps {
		count[d.Reason]++
	}
	if count[pstore.Ended] != 1 || count["Panic"] != panics || len(dumps) != 1+panics {
		t.Errorf("of earlier boots were kept %v, want pcd's last words once and %d panics", count, panics)
	}
}

// TestPcdFrozen has pcd stand still: it is found out, killed and started again.
func TestPcdFrozen(t *testing.T) {
	ctx := machine.Patient(t)
	m := start(ctx, t, sabotaged(t))
	tell(t, m, "signal pcd %d", unix.SIGSTOP)
	m.Expect(ctx, `pcd is frozen and will be killed`)
	m.Expect(ctx, `will be started again`)
	m.Expect(ctx, `pcd is ready`)
	m.Expect(ctx, `is waiting to be enrolled`)
}

// leastPause is how long the kernel waits at least between a panic and the reset. It
// waits for 10 seconds (kernel/panic), by its own clock.
const leastPause = 8 * time.Second

// TestPcinitCrashes has PID 1's runtime crash again and again: the kernel panics and the
// machine starts again, which then tells of the crash. From the third time on it is a
// boot loop, and pcd's start waits.
func TestPcinitCrashes(t *testing.T) {
	m := start(machine.Patient(t), t, sabotaged(t))
	for crash := range 3 {
		ctx := machine.Patient(t)
		order(t, m, "signal 1 %d", unix.SIGABRT)
		m.Expect(ctx, `SIGABRT: abort`)
		m.Expect(ctx, `Kernel panic - not syncing: Attempted to kill init!`)
		panicked := m.Console().Found()
		if pause := m.WaitReset(ctx).Sub(panicked); pause < leastPause {
			t.Errorf("the kernel panicked, and reset the machine after %v, want %v or more", pause, leastPause)
		}
		m.Expect(ctx, `an earlier boot ended badly`)
		if crash == 2 {
			m.Expect(ctx, `the machine seems to be in a boot loop: pcd's start waits" panics=3 wait=30s`)
		}
		m.Expect(ctx, `is waiting to be enrolled`)
		// The store has the log's end.
		words := tell(t, m, "read /run/powercloud/panics.json")
		for _, want := range []string{"main.main()", "Kernel panic - not syncing: Attempted to kill init!"} {
			if !strings.Contains(words, want) {
				t.Errorf("after crash %d, the last panic was kept without %q, as %s", crash+1, want, words)
			}
		}
	}
}

// TestReboot has PID 1 asked to reboot.
func TestReboot(t *testing.T) {
	ctx := machine.Patient(t)
	m := start(ctx, t, sabotaged(t))
	order(t, m, "signal 1 %d", unix.SIGTERM)
	m.Expect(ctx, `the machine's run ends`)
	m.Expect(ctx, `good-bye`)
	m.WaitReset(ctx)
	node.ExpectBanner(ctx, m)
}
