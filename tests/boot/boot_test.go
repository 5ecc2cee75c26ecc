package boot

import (
	"image"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/tests/chrony"
	"powercloud.unidatum.com/tests/dnsmasq"
	"powercloud.unidatum.com/tests/machine"
	"powercloud.unidatum.com/tests/machine/variables"
	"powercloud.unidatum.com/tests/namespace"
	"powercloud.unidatum.com/tests/node"
)

// TestMain has the tests run in network namespaces of their own: see TestClock.
func TestMain(m *testing.M) { namespace.Main(m) }

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

// TestMonitor looks at the monitor of a node that has one: it shows lines of text. The
// firmware's picture is in the middle, and its own lines are fewer.
func TestMonitor(t *testing.T) {
	ctx := machine.Patient(t)
	config := with(t, machine.VirtioBlock, machine.VirtioNet)
	if config.Architecture == machine.ARM64 {
		t.Skip("a monitor is looked at on amd64 alone")
	}
	config.Monitor = true
	m := machine.Start(ctx, t, config)
	node.ExpectBanner(ctx, m)
	picture := m.Screenshot(ctx)
	if lines := textLines(picture); lines < 10 {
		t.Errorf("the monitor, %v, shows %d lines of text", picture.Bounds(), lines)
	}
}

// textLines counts the lines of text of a picture: those that have something in the
// columns at its left, in a font 16 pixels high and 8 wide.
func textLines(picture image.Image) int {
	bounds := picture.Bounds()
	lit := map[int]bool{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < min(bounds.Min.X+8*8, bounds.Max.X); x++ {
			if red, green, blue, _ := picture.At(x, y).RGBA(); red|green|blue != 0 {
				lit[(y-bounds.Min.Y)/16] = true
			}
		}
	}
	return len(lit)
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

// TestClock gives a node a clock that is years ahead, and a network that names a time
// server.
func TestClock(t *testing.T) {
	config := with(t, machine.VirtioBlock, machine.VirtioNet)
	servers := namespace.New(t)
	network := machine.NewNetwork(t)
	if err := servers.Do(func() error { return network.Tap("tap0") }); err != nil {
		t.Fatal(err)
	}
	namespace.Address(t, servers, "tap0", "192.0.2.1/24")
	namespace.Plug(t, servers, "tap0", true)
	chrony.Start(t, servers)
	dnsmasq.Start(t, servers, "--interface=tap0", "--bind-interfaces", "--dhcp-range=192.0.2.100,192.0.2.100,255.255.255.0,1h",
		"--dhcp-option=option:ntp-server,192.0.2.1")
	config.Clock = time.Date(2029, 1, 2, 3, 4, 5, 0, time.UTC)
	config.Cards[0].Network = network

	ctx := machine.Patient(t)
	m := machine.Start(ctx, t, config)
	m.Expect(ctx, `msg="address by DHCP" svc=pcd interface=eth0 address=192\.0\.2\.100/24`)
	found := m.Expect(ctx, `msg="the clock is right" svc=pcd server=192\.0\.2\.1 offset=(\S+) `)
	offset, err := time.ParseDuration(found[1])
	if err != nil {
		t.Fatal(err)
	}
	// The clock went on while the machine started.
	late := time.Until(config.Clock)
	if off := (offset + late).Abs(); off > machine.Patience {
		t.Errorf("the clock was off by %v, and corrected by %v", -late, offset)
	}
}
