package machine

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"powercloud.unidatum.com/tests/machine/variables"
)

// An Architecture is a processor's, by the name that Go has for it.
type Architecture string

// Architectures of machines.
const (
	AMD64 Architecture = "amd64"
	ARM64 Architecture = "arm64"
)

// A Firmware is what a machine runs first.
type Firmware int

// Kinds of firmware.
const (
	// UEFI is OVMF or AAVMF with Secure Boot off.
	UEFI Firmware = iota
	// SecureBoot is a UEFI that enforces signatures once Config.Variables has
	// its keys, and on amd64 keeps its variables from the system by SMM.
	SecureBoot
	// Direct has no UEFI: the kernel is started at once. It must be a bzImage
	// on amd64 and an Image on arm64.
	Direct
)

// A Controller is what a disk is attached to.
type Controller string

// Controllers of disks.
const (
	VirtioBlock Controller = "virtio-blk"
	VirtioSCSI  Controller = "virtio-scsi"
	NVMe        Controller = "nvme"
	AHCI        Controller = "ahci"
	MegaSAS     Controller = "megasas"
	PVSCSI      Controller = "pvscsi"
)

// A CardModel is a kind of network card.
type CardModel string

// Kinds of network cards.
const (
	VirtioNet CardModel = "virtio-net-pci"
	E1000E    CardModel = "e1000e"
	VMXNet3   CardModel = "vmxnet3"
)

// A Config says what a machine is made of. Its zero value is an amd64 machine
// with 512 MiB of memory, one processor, a UEFI and nothing to start.
type Config struct {
	// Name is that of its files and in messages, "machine" where it is empty.
	Name         string
	Architecture Architecture
	// MemoryMiB is 512 where it is 0.
	MemoryMiB int
	// CPUs is 1 where it is 0.
	CPUs     int
	Firmware Firmware
	// Variables are put into the firmware's empty store at the beginning.
	Variables []variables.Variable
	// Kernel, where it is not nil, is started by the firmware instead of what
	// is on the disks. A Secure Boot firmware does not check it.
	Kernel *Kernel
	// Disks are known to QEMU as disk0, disk1 and so on, and Cards as card0.
	Disks []Disk
	Cards []Card
	// TPM adds a TPM 2.0, whose state lasts as long as the Machine.
	TPM bool
	// Files are what the firmware's fw_cfg device holds, by name. Names that
	// are not QEMU's own begin with "opt/".
	Files map[string][]byte
	// Watchdog adds an i6300esb, which resets the machine.
	Watchdog bool
	// NoReboot has the watchdog in the chipset of an amd64 machine never reset it, as
	// in QEMU before 8.0: the system can't tell it from one that does.
	NoReboot bool
	// Debugger is for [Machine.Freeze].
	Debugger bool
	// Random adds a virtio source of random numbers.
	Random bool
	// Monitor adds a graphics card, for [Machine.Screenshot].
	Monitor bool
	// Port adds a second serial port, for [Machine.Port]. Linux calls it ttyS1.
	Port bool
	// Clock is what the machine's own clock says when it is switched on, the time
	// where it is zero.
	Clock time.Time
	// Balloon adds a memory balloon, whose driver in the system tells how much
	// memory there is, for [Observed.Memory].
	Balloon bool
	// CountInstructions has QEMU count the instructions that the machine
	// executes, for [Observed.Instructions]. It translates them then, however
	// the host could execute them, and the machine's clock goes by their number:
	// a nanosecond for each, and real time only while the machine is idle.
	CountInstructions bool
	// StopAtReset ends the machine where it would start again.
	StopAtReset bool
	// Arguments are added to QEMU's command line.
	Arguments []string
}

// A Kernel is started by the firmware, from files of the machine that QEMU runs
// on.
type Kernel struct {
	Path        string
	Initramfs   string // A path as well, or empty.
	CommandLine string
}

// A Disk is a disk of a machine. The image that it begins as is never changed.
type Disk struct {
	// Image is the path of a raw image, or empty for a blank disk.
	Image string
	// Folder is instead the path of a folder, whose files the disk then has on
	// a FAT file system in its only partition, of half a gigabyte.
	Folder string
	// Size is in bytes. It may be 0 where there is an image, and more than
	// the image's to have free space after it.
	Size int64
	// Controller is VirtioBlock where it is empty.
	Controller Controller
	// SectorSize is in bytes, 512 where it is 0.
	SectorSize int
	// Serial is the disk's serial number; where it is empty it is "disk0" and
	// so on.
	Serial string
	// Boot is the disk's place in the order in which the firmware tries disks, from
	// 1 on; 0 leaves it to the firmware.
	Boot int
	// ReadOnly has the disk refuse writes.
	ReadOnly bool
	// BytesPerSecond is how much the disk reads and writes at most, together; as much as
	// the host can where it is 0.
	BytesPerSecond int64
}

// A Card is a network card.
type Card struct {
	// Model is VirtioNet where it is empty.
	Model CardModel
	// MAC is the address; where it is empty it is 52:54:00:00:00:00, with the
	// number of the card as its last byte.
	MAC string
	// Network is what the card is plugged into. Where it is nil, that is a
	// network of QEMU's own with a DHCP server: 10.0.2.0/24, with the host
	// as 10.0.2.2.
	Network *Network
	// Forward are TCP ports of the machine that [Machine.Address] leads to.
	// They need a network of QEMU's own.
	Forward []int
	// Isolated has a network of QEMU's own lead nowhere else: neither to the host
	// nor to what that can reach.
	Isolated bool
}

// What there is to choose from.
var (
	controllers = []Controller{VirtioBlock, VirtioSCSI, NVMe, AHCI, MegaSAS, PVSCSI}
	cardModels  = []CardModel{VirtioNet, E1000E, VMXNet3}
)

// complete fills in what was left out, and refuses what can't be.
func (c Config) complete() (Config, error) {
	defaults(&c.Name, "machine")
	defaults(&c.Architecture, AMD64)
	defaults(&c.MemoryMiB, 512)
	defaults(&c.CPUs, 1)
	c.Disks = append([]Disk(nil), c.Disks...)
	for i := range c.Disks {
		disk := &c.Disks[i]
		defaults(&disk.Controller, VirtioBlock)
		defaults(&disk.SectorSize, 512)
		defaults(&disk.Serial, fmt.Sprintf("disk%d", i))
		switch {
		case !slices.Contains(controllers, disk.Controller):
			return c, fmt.Errorf("there is no controller %q of disks", disk.Controller)
		case disk.Folder != "" && (disk.Image != "" || disk.Size != 0):
			return c, fmt.Errorf("disk %d has the files of a folder, and an image or a size as well", i)
		case disk.Folder == "" && disk.Image == "" && disk.Size == 0:
			return c, fmt.Errorf("disk %d has neither an image nor a size", i)
		}
	}
	c.Cards = append([]Card(nil), c.Cards...)
	for i := range c.Cards {
		card := &c.Cards[i]
		defaults(&card.Model, VirtioNet)
		defaults(&card.MAC, fmt.Sprintf("52:54:00:00:00:%02x", i))
		if !slices.Contains(cardModels, card.Model) {
			return c, fmt.Errorf("there is no network card of the kind %q", card.Model)
		}
		if card.Network != nil && len(card.Forward) > 0 {
			return c, fmt.Errorf("card %d forwards ports, which only QEMU's own network does", i)
		}
		if card.Network != nil && card.Isolated {
			return c, fmt.Errorf("card %d is isolated, which only QEMU's own network can be", i)
		}
	}
	switch {
	case c.Architecture != AMD64 && c.Architecture != ARM64:
		return c, fmt.Errorf("there are no machines of the architecture %q", c.Architecture)
	case c.Architecture != AMD64 && (c.NoReboot || c.Debugger):
		return c, errors.New("the chipset's watchdog and the debugger are those of amd64 machines")
	case c.Firmware == Direct && c.Kernel == nil:
		return c, errors.New("without UEFI it needs a kernel")
	case c.Firmware == Direct && len(c.Variables) > 0:
		return c, errors.New("without UEFI there is nothing that keeps variables")
	}
	return c, nil
}

func defaults[T comparable](value *T, standard T) {
	var zero T
	if *value == zero {
		*value = standard
	}
}

// native tells whether this program's processor is of that architecture.
func (a Architecture) native() bool { return runtime.GOARCH == string(a) }
