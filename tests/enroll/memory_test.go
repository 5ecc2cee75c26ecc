package enroll

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/partition/gpt"

	"powercloud.unidatum.com/go/image/disk"
	"powercloud.unidatum.com/tests/admin"
	"powercloud.unidatum.com/tests/machine"
	"powercloud.unidatum.com/tests/node"
)

// systemDisk returns a disk image that has the system's partition alone.
func systemDisk(t *testing.T, image string) string {
	t.Helper()
	from, err := os.Open(image)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	path := filepath.Join(t.TempDir(), "system.img")
	to, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	if _, err := io.CopyN(to, from, disk.StateOffset); err != nil {
		t.Fatal(err)
	}
	const size = disk.StateOffset + mebibyte
	if err := to.Truncate(size); err != nil {
		t.Fatal(err)
	}
	writable, err := file.New(to, false).Writable()
	if err != nil {
		t.Fatal(err)
	}
	table := &gpt.Table{
		LogicalSectorSize: disk.SectorSize, PhysicalSectorSize: disk.SectorSize, ProtectiveMBR: true,
		Partitions: []*gpt.Partition{{
			Index: 1, Type: gpt.EFISystemPartition, Name: disk.SystemName,
			Start: disk.SystemOffset / disk.SectorSize, End: disk.StateOffset/disk.SectorSize - 1, Size: disk.SystemSize,
		}},
	}
	if err := table.Write(writable, size); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestWithoutStateDisk: no disk has a state partition. The node works, says so, and has
// forgotten everything after a restart.
func TestWithoutStateDisk(t *testing.T) {
	ctx := machine.Patient(t)
	config := blank(t)
	config.Disks[0].Image = systemDisk(t, config.Disks[0].Image)
	a := admin.New(ctx, t)
	m := machine.Start(ctx, t, config)
	enroll(ctx, t, m, a)
	if !strings.Contains(m.Console().Text(), "no state disk (powercloud.state=); node state is kept in RAM and lost at reboot") {
		t.Error("the node doesn't say that it has no disk")
	}
	if got := info(ctx, a)["state"]; !strings.Contains(got, "RAM") {
		t.Errorf("the node's state is %q", got)
	}
	if status := a.Run(ctx, "status"); !strings.Contains(status, "\n  home-1: state is in RAM, lost at reboot\n") {
		t.Errorf("status says\n%s", status)
	}
	a.Run(ctx, "node", "reboot", name)
	m.WaitReset(ctx)
	node.ExpectBanner(ctx, m)
	if node.Code(ctx, m, "enrollment") == "" {
		t.Error("the node waits for nobody")
	}
}
