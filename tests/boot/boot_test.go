package boot

import (
	"strings"
	"testing"

	"powercloud.unidatum.com/tests/machine"
	"powercloud.unidatum.com/tests/machine/variables"
	"powercloud.unidatum.com/tests/node"
)

// with returns a machine with the node's disk image behind a controller, and a network
// card.
func with(t *testing.T, controller machine.Controller, card machine.CardModel) machine.Config {
	t.Helper()
	image, architecture := machine.Image(t)
	config := node.Machine(architecture, image)
	config.Disks[0].Controller, config.Cards[0].Model = controller, card
	return config
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
	// The kernel's own runs beside that of a chipset, and alone where that has none.
	watchdogs := []string{`watchdog="Software Watchdog" software=true`}
	if architecture == machine.AMD64 {
		watchdogs = append(watchdogs, "watchdog=iTCO_wdt software=false")
		machines = append(machines,
			hardware{machine.VirtioSCSI, machine.VirtioNet},
			hardware{machine.NVMe, machine.VMXNet3},
			hardware{machine.AHCI, machine.E1000E},
		)
	}
	for _, h := range machines {
		t.Run(string(h.controller)+" "+string(h.card), func(t *testing.T) {
			ctx := machine.Patient(t)
			m := machine.Start(ctx, t, with(t, h.controller, h.card))
			if architecture == machine.ARM64 {
				// The firmware hands over no device tree: the disk and the card are found by
				// ACPI.
				m.Expect(ctx, `EFI stub: Generating empty DTB`)
			}
			node.ExpectBanner(ctx, m)
			for _, watchdog := range watchdogs {
				if !strings.Contains(m.Console().Text(), `msg="the watchdog runs" `+watchdog) {
					t.Errorf("the node doesn't say that it has %s", watchdog)
				}
			}
		})
	}
}

// TestFirmwareCommandLine starts a node by a boot entry that has a command line. With
// Secure Boot off, the stub passes it on; the kernel must not heed it.
func TestFirmwareCommandLine(t *testing.T) {
	ctx := machine.Patient(t)
	config := with(t, machine.VirtioBlock, machine.VirtioNet)
	file := `\EFI\BOOT\BOOTX64.EFI`
	if config.Architecture == machine.ARM64 {
		file = `\EFI\BOOT\BOOTAA64.EFI`
	}
	config.Variables = variables.BootOption(file, "rdinit=/sbin/pcd console=ttyS3 lockdown=none")
	m := machine.Start(ctx, t, config)
	m.Expect(ctx, `BdsDxe: starting Boot0001 "test"`)
	node.ExpectBanner(ctx, m)
}

// TestPower has a node restart, and end when somebody presses its power button.
func TestPower(t *testing.T) {
	ctx := machine.Patient(t)
	m := machine.Start(ctx, t, with(t, machine.VirtioBlock, machine.VirtioNet))
	node.ExpectBanner(ctx, m)
	m.Reset(ctx)
	node.ExpectBanner(ctx, m)
	m.PowerButton(ctx)
	m.Wait(ctx)
	if last := m.Console().Last(20); !strings.Contains(last, "Power down") {
		t.Errorf("it ended without saying so; its console ends with:\n%s", last)
	}
}

// TestLink has a node lose its network and get it back.
func TestLink(t *testing.T) {
	ctx := machine.Patient(t)
	m := machine.Start(ctx, t, with(t, machine.VirtioBlock, machine.VirtioNet))
	node.ExpectBanner(ctx, m)
	m.SetLink(ctx, 0, false)
	m.Expect(ctx, `msg=carrier svc=pcd interface=eth0 carrier=false`)
	m.SetLink(ctx, 0, true)
	m.Expect(ctx, `msg=carrier svc=pcd interface=eth0 carrier=true`)
	m.Expect(ctx, `msg="address by DHCP" svc=pcd interface=eth0 address=10\.0\.2\.15/24`)
}
