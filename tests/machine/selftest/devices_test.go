package selftest

import (
	"bytes"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"powercloud.unidatum.com/tests/machine"
)

// TestDisks has a disk on each controller in one machine, and two kinds of
// sectors. Disks and the TPM must remember what was over a power cut.
func TestDisks(t *testing.T) {
	ctx := machine.Patient(t)
	drivers := map[machine.Controller]string{
		machine.VirtioBlock: "virtio_blk,virtio-pci",
		machine.VirtioSCSI:  "sd,virtio_scsi,virtio-pci",
		machine.NVMe:        "nvme",
		machine.AHCI:        "sd,ahci",
		machine.MegaSAS:     "sd,megaraid_sas",
		machine.PVSCSI:      "sd,vmw_pvscsi",
	}
	image := filepath.Join(t.TempDir(), "image")
	content := append([]byte("the image"), make([]byte, 1<<20-9)...)
	if err := os.WriteFile(image, content, 0o600); err != nil {
		t.Fatal(err)
	}
	config := machine.Config{TPM: true, Kernel: kernel(t, machine.AMD64, "virtio_pci", "virtio_blk", "virtio_scsi", "nvme", "ahci", "megaraid_sas", "vmw_pvscsi", "sd_mod")}
	controllers := []machine.Controller{machine.VirtioBlock, machine.VirtioSCSI, machine.NVMe, machine.AHCI, machine.MegaSAS, machine.PVSCSI}
	for i, controller := range controllers {
		// The sizes tell the disks apart.
		config.Disks = append(config.Disks, machine.Disk{Image: image, Size: int64(i+2) << 20, Controller: controller})
	}
	config.Disks = append(config.Disks, machine.Disk{Size: 32 << 20, Controller: machine.NVMe, SectorSize: 4096})
	m := machine.Start(ctx, t, config)
	const tpm = `guest: tpm tpm0 version 2 resets (\d+)`
	before, err := strconv.Atoi(m.Expect(ctx, tpm)[1])
	if err != nil {
		t.Fatal(err)
	}
	m.Expect(ctx, `guest: ready`)
	report := m.Console().Text()
	for i, controller := range controllers {
		pattern := regexp.MustCompile(`guest: disk \S+ driver ` + drivers[controller] + ` sectors ` + []string{"4096", "6144", "8192", "10240", "12288", "14336"}[i] + ` of 512 begins "the image"`)
		if !pattern.MatchString(report) {
			t.Errorf("there is no line %s", pattern)
		}
	}
	if !strings.Contains(report, "driver nvme sectors 65536 of 4096") {
		t.Error("there is no disk with sectors of 4096 bytes")
	}
	if t.Failed() {
		t.Logf("the guest said:\n%s", m.Console().Last(20))
	}
	m.Type("save something else")
	m.Expect(ctx, `guest: saved /dev/vda`)
	m.Unplug(ctx, "disk0")
	m.Type("poweroff")
	m.Wait(ctx)
	if after, err := os.ReadFile(image); err != nil || !bytes.Equal(after, content) {
		t.Errorf("the image was changed: %v", err)
	}
	m.PowerOn(ctx)
	m.Expect(ctx, `guest: disk vda .* begins "something else"`)
	if after, err := strconv.Atoi(m.Expect(ctx, tpm)[1]); err != nil || after <= before {
		t.Errorf("the TPM was reset %d times before the machine was switched off, and %d times after, %v", before, after, err)
	}
}

// TestCards has each kind of network card, and talks by each: with the host
// through a forwarded port, and with another machine.
func TestCards(t *testing.T) {
	ctx := machine.Patient(t)
	linux := kernel(t, machine.AMD64, "virtio_pci", "virtio_net", "e1000e", "vmxnet3")
	networks := []*machine.Network{machine.NewNetwork(t), machine.NewNetwork(t)}
	one := machine.Start(ctx, t, machine.Config{Name: "one", Kernel: linux, Firmware: machine.Direct, Cards: []machine.Card{
		{Model: machine.VirtioNet, Forward: []int{80, 81}},
		{Model: machine.E1000E, Network: networks[0]},
		{Model: machine.VMXNet3, Network: networks[1]},
	}})
	two := machine.Start(ctx, t, machine.Config{Name: "two", Kernel: linux, Firmware: machine.Direct, Cards: []machine.Card{
		{Model: machine.VMXNet3, Network: networks[0], MAC: "52:54:00:00:01:00"},
		{Model: machine.VirtioNet, Network: networks[1], MAC: "52:54:00:00:01:01"},
	}})
	one.Expect(ctx, `guest: ready`)
	two.Expect(ctx, `guest: ready`)
	card := func(m *machine.Machine, driver string) string {
		t.Helper()
		found := regexp.MustCompile(`guest: card (\S+) driver ` + driver).FindStringSubmatch(m.Console().Text())
		if found == nil {
			t.Fatalf("there is no card with the driver %s:\n%s", driver, m.Console().Last(20))
		}
		return found[1]
	}
	for _, line := range []struct {
		m            *machine.Machine
		text, answer string
	}{
		{one, "address " + card(one, "virtio_net") + " 10.0.2.15/24", `guest: address`},
		{one, "address " + card(one, "e1000e") + " 10.1.0.1/24", `guest: address`},
		{one, "address " + card(one, "vmxnet3") + " 10.2.0.1/24", `guest: address`},
		{one, "serve 80", `guest: serves`},
		{two, "address " + card(two, "vmxnet3") + " 10.1.0.2/24", `guest: address`},
		{two, "address " + card(two, "virtio_net") + " 10.2.0.2/24", `guest: address`},
		{two, "fetch 10.1.0.1:80", `guest: fetched hello from port 80`},
		{two, "fetch 10.2.0.1:80", `guest: fetched hello from port 80`},
	} {
		line.m.Type(line.text)
		line.m.Expect(ctx, line.answer)
	}
	connection, err := net.Dial("tcp", one.Address(ctx, 80))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if hello, err := io.ReadAll(connection); string(hello) != "hello from port 80\n" {
		t.Errorf("the host read %q, %v", hello, err)
	}
	one.SetLink(ctx, 0, false)
	one.Type("report")
	one.Expect(ctx, `driver virtio_net,virtio-pci address \S+ carrier 0`)
	one.SetLink(ctx, 0, true)
	one.Type("report")
	one.Expect(ctx, `driver virtio_net,virtio-pci address \S+ carrier 1`)
}

// TestDevices has the other devices, presses buttons, and crashes: what the
// kernel said last must be there after the next start.
func TestDevices(t *testing.T) {
	ctx := machine.Patient(t)
	m := machine.Start(ctx, t, machine.Config{
		Kernel:   kernel(t, machine.AMD64, "virtio_pci", "virtio_rng", "qemu_fw_cfg", "i6300esb", "efivarfs", "efi_pstore", "evdev", "button"),
		TPM:      true,
		Files:    map[string][]byte{"opt/powercloud/greeting": []byte("hello, guest")},
		Watchdog: true,
		Random:   true,
		Monitor:  true,
	})
	m.Expect(ctx, `guest: tpm tpm0 version 2 resets \d+ pcr0 [0-9A-F]{64}`)
	m.Expect(ctx, `guest: file opt/powercloud/greeting holds "hello, guest"`)
	m.Expect(ctx, `guest: secureboot 0`)
	m.Expect(ctx, `guest: random virtio_rng.0`)
	m.Expect(ctx, `guest: acpi yes`)
	m.Expect(ctx, `guest: ready`)
	if bounds := m.Screenshot(ctx).Bounds(); bounds.Dx() < 640 || bounds.Dy() < 400 {
		t.Errorf("the monitor shows %v", bounds)
	}
	m.PowerButton(ctx)
	m.Expect(ctx, `guest: power button`)

	m.Type("crash")
	m.Expect(ctx, `Kernel panic`)
	m.WaitReset(ctx)
	m.Expect(ctx, `guest: pstore dmesg-efi\S+ mentions a crash true`)
	m.Expect(ctx, `guest: ready`)
	m.Type("watchdog 2")
	m.Expect(ctx, `guest: watchdog`)
	m.WaitReset(ctx)
	m.Expect(ctx, `guest: ready`)

	stored := false
	for _, v := range m.Variables() {
		stored = stored || strings.HasPrefix(v.Name, "dump-")
	}
	if !stored {
		t.Error("the variables that the host reads have no crash")
	}
}
