package boot

import (
	"context"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/tests/machine"
	"powercloud.unidatum.com/tests/machine/variables"
)

// patience is how long a machine may take altogether, on a host that is busy.
const patience = 5 * time.Minute

// node is a machine with a node's disk image and the smallest memory supported.
func node(t *testing.T, controller machine.Controller, card machine.CardModel) machine.Config {
	t.Helper()
	image, architecture := machine.Image(t)
	return machine.Config{
		Architecture: architecture,
		MemoryMiB:    1024,
		CPUs:         2,
		Disks:        []machine.Disk{{Image: image, Controller: controller}},
		Cards:        []machine.Card{{Model: card}},
		Random:       true,
	}
}

func patient(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// expectBanner waits until a node says that it is blank, and has an address.
func expectBanner(ctx context.Context, m *machine.Machine) {
	m.Expect(ctx, `Kernel is locked down from Kernel configuration`)
	m.Expect(ctx, `pcinit begins`)
	m.Expect(ctx, `(?m)^addresses: 10\.0\.2\.15\b`)
	m.Expect(ctx, `This node is blank`)
}

// TestBoot starts one image from disks that the firmware starts from, with every kind
// of network card.
func TestBoot(t *testing.T) {
	_, architecture := machine.Image(t)
	type hardware struct {
		controller machine.Controller
		card       machine.CardModel
	}
	machines := []hardware{{machine.VirtioBlock, machine.VirtioNet}}
	if architecture == machine.AMD64 {
		machines = append(machines,
			hardware{machine.VirtioSCSI, machine.VirtioNet},
			hardware{machine.NVMe, machine.VMXNet3},
			hardware{machine.AHCI, machine.E1000E},
		)
	}
	for _, h := range machines {
		t.Run(string(h.controller)+" "+string(h.card), func(t *testing.T) {
			ctx := patient(t)
			expectBanner(ctx, machine.Start(ctx, t, node(t, h.controller, h.card)))
		})
	}
}

// TestFirmwareCommandLine starts a node by a boot entry that has a command line. With
// Secure Boot off, the stub passes it on; the kernel must not heed it.
func TestFirmwareCommandLine(t *testing.T) {
	ctx := patient(t)
	config := node(t, machine.VirtioBlock, machine.VirtioNet)
	file := `\EFI\BOOT\BOOTX64.EFI`
	if config.Architecture == machine.ARM64 {
		file = `\EFI\BOOT\BOOTAA64.EFI`
	}
	config.Variables = variables.BootOption(file, "rdinit=/sbin/pcd console=ttyS3 lockdown=none")
	m := machine.Start(ctx, t, config)
	m.Expect(ctx, `BdsDxe: starting Boot0001 "test"`)
	expectBanner(ctx, m)
}

// TestPower has a node restart, and end when somebody presses its power button.
func TestPower(t *testing.T) {
	ctx := patient(t)
	m := machine.Start(ctx, t, node(t, machine.VirtioBlock, machine.VirtioNet))
	expectBanner(ctx, m)
	m.Reset(ctx)
	expectBanner(ctx, m)
	m.PowerButton(ctx)
	m.Wait(ctx)
	if last := m.Console().Last(20); !strings.Contains(last, "Power down") {
		t.Errorf("it ended without saying so; its console ends with:\n%s", last)
	}
}

// TestLink has a node lose its network and get it back.
func TestLink(t *testing.T) {
	ctx := patient(t)
	m := machine.Start(ctx, t, node(t, machine.VirtioBlock, machine.VirtioNet))
	expectBanner(ctx, m)
	m.SetLink(ctx, 0, false)
	m.Expect(ctx, `msg=carrier interface=eth0 carrier=false`)
	m.SetLink(ctx, 0, true)
	m.Expect(ctx, `msg=carrier interface=eth0 carrier=true`)
	m.Expect(ctx, `msg="address by DHCP" interface=eth0 address=10\.0\.2\.15/24`)
}
