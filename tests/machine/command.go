package machine

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// commandLine builds QEMU's command line.
type commandLine struct {
	config    Config
	tools     tools
	folder    string
	arguments []string
	// files are inherited by QEMU; the first is its descriptor 3.
	files []*os.File
	// slots is how many PCI Express slots there are.
	slots int
}

func (l *commandLine) add(arguments ...string) { l.arguments = append(l.arguments, arguments...) }

// device adds a device: its kind and its properties, each as NAME=VALUE.
func (l *commandLine) device(kind string, properties ...string) {
	for i := range properties {
		properties[i] = escape(properties[i])
	}
	l.add("-device", strings.Join(append([]string{kind}, properties...), ","))
}

// escape writes a value so that QEMU does not take a comma in it for its end.
func escape(value string) string { return strings.ReplaceAll(value, ",", ",,") }

// slot adds a PCI Express slot, from which a device can be unplugged, and
// returns the property that puts a device there.
func (l *commandLine) slot() string {
	l.slots++
	name := fmt.Sprintf("slot%d", l.slots)
	l.device("pcie-root-port", "id="+name, fmt.Sprintf("chassis=%d", l.slots))
	return "bus=" + name
}

// inherit has QEMU inherit a file and returns its descriptor there.
func (l *commandLine) inherit(file *os.File) int {
	l.files = append(l.files, file)
	return 2 + len(l.files)
}

// channel adds a character device that is an inherited socket.
func (l *commandLine) channel(name string, socket *os.File) {
	l.add("-chardev", fmt.Sprintf("socket,id=%s,fd=%d", name, l.inherit(socket)))
}

// closeFiles closes this side's copies of what QEMU inherits.
func (l *commandLine) closeFiles() {
	for _, file := range l.files {
		_ = file.Close() // It may be closed already.
	}
}

// command is QEMU's command line as far as it was built.
func (l *commandLine) command() *exec.Cmd {
	command := l.tools.command(l.config.Architecture.emulator(), l.arguments...)
	command.ExtraFiles = l.files
	return command
}

// base adds what every machine has.
func (l *commandLine) base(accelerator string) {
	c := l.config
	board := "q35,smm=off"
	switch {
	case c.Architecture == ARM64:
		board = "virt,gic-version=3"
	case c.Firmware == SecureBoot:
		board = "q35,smm=on"
		// A firmware with SMM can't keep its secrets over a suspend.
		l.add("-global", "ICH9-LPC.disable_s3=1", "-global", "driver=cfi.pflash01,property=secure,value=on")
	}
	if c.Architecture != ARM64 {
		// By itself the chipset's watchdog resets the machine, as a real one's.
		l.add("-global", "ICH9-LPC.noreboot="+onOff(c.NoReboot))
	}
	l.add("-nodefaults", "-no-user-config", "-display", "none", "-S",
		"-name", escape(c.Name), "-machine", board,
		"-m", fmt.Sprintf("%dM", c.MemoryMiB), "-smp", fmt.Sprint(c.CPUs))
	if accelerator == kvm {
		l.add("-accel", "kvm", "-cpu", "host")
	} else {
		l.add("-accel", "tcg", "-cpu", "max")
	}
	if c.CountInstructions {
		l.add("-icount", "shift=0")
	}
	for _, folder := range []string{"usr/share/qemu", "usr/share/seabios", "usr/lib/ipxe/qemu"} {
		l.add("-L", l.tools.path(folder))
	}
	if !c.Clock.IsZero() {
		l.add("-rtc", "base="+c.Clock.UTC().Format("2006-01-02T15:04:05"))
	}
	if c.StopAtReset {
		l.add("-no-reboot")
	}
}

// firmware adds the firmware's two flash devices, and the kernel.
func (l *commandLine) firmware() {
	c := l.config
	if c.Firmware != Direct {
		code, _ := c.firmware(l.tools)
		l.add("-drive", "if=pflash,unit=0,format=raw,readonly=on,file="+escape(code),
			"-drive", "if=pflash,unit=1,format=raw,file="+escape(variablesFile(l.folder)))
	}
	if c.Kernel != nil {
		l.add("-kernel", c.Kernel.Path, "-append", c.Kernel.CommandLine)
		if c.Kernel.Initramfs != "" {
			l.add("-initrd", c.Kernel.Initramfs)
		}
	}
}

// disk adds the disk of this number.
func (l *commandLine) disk(i int, disk Disk) {
	node, name := fmt.Sprintf("node%d", i), fmt.Sprintf("disk%d", i)
	l.add("-blockdev", fmt.Sprintf("driver=qcow2,node-name=%s,read-only=%s,discard=unmap,file.driver=file,file.filename=%s",
		node, onOff(disk.ReadOnly), escape(overlayFile(l.folder, i))))
	if disk.BytesPerSecond > 0 {
		limit, limited := fmt.Sprintf("limit%d", i), fmt.Sprintf("limited%d", i)
		l.add("-object", fmt.Sprintf("throttle-group,id=%s,x-bps-total=%d", limit, disk.BytesPerSecond),
			"-blockdev", fmt.Sprintf("driver=throttle,node-name=%s,throttle-group=%s,file=%s", limited, limit, node))
		node = limited
	}
	properties := []string{"drive=" + node, "id=" + name, "serial=" + disk.Serial,
		fmt.Sprintf("logical_block_size=%d", disk.SectorSize), fmt.Sprintf("physical_block_size=%d", disk.SectorSize)}
	if disk.Boot > 0 {
		properties = append(properties, fmt.Sprintf("bootindex=%d", disk.Boot))
	}
	controller := fmt.Sprintf("controller%d", i)
	behind := func(adapter, bus, kind string) {
		l.device(adapter, "id="+controller, bus)
		l.device(kind, append(properties, "bus="+controller+".0")...)
	}
	switch disk.Controller {
	case VirtioBlock:
		l.device("virtio-blk-pci", append(properties, l.slot())...)
	case NVMe:
		l.device("nvme", append(properties, l.slot())...)
	case VirtioSCSI:
		behind("virtio-scsi-pci", l.slot(), "scsi-hd")
	case PVSCSI:
		behind("pvscsi", l.slot(), "scsi-hd")
	case MegaSAS:
		behind("megasas-gen2", l.slot(), "scsi-hd")
	case AHCI:
		// A conventional PCI device, which fits no slot of PCI Express.
		behind("ich9-ahci", "bus=pcie.0", "ide-hd")
	}
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// card adds the network card of this number.
func (l *commandLine) card(i int, card Card) error {
	network := fmt.Sprintf("network%d", i)
	if card.Network == nil {
		options := "user,id=" + network
		if card.Isolated {
			options += ",restrict=on"
		}
		for _, port := range card.Forward {
			options += fmt.Sprintf(",hostfwd=tcp:127.0.0.1:0-:%d", port)
		}
		l.add("-netdev", options)
	} else {
		socket, err := card.Network.plug()
		if err != nil {
			return err
		}
		l.add("-netdev", fmt.Sprintf("socket,id=%s,fd=%d", network, l.inherit(socket)))
	}
	// Without a ROM there is no starting from the network, which takes long.
	l.device(string(card.Model), fmt.Sprintf("id=card%d", i), "netdev="+network, "mac="+card.MAC, "romfile=", l.slot())
	return nil
}

// extras adds the other devices.
func (l *commandLine) extras() error {
	c := l.config
	if c.Random {
		l.add("-object", "rng-builtin,id=random")
		l.device("virtio-rng-pci", "rng=random", l.slot())
	}
	if c.Balloon {
		l.device("virtio-balloon-pci", "id="+balloonName, l.slot())
	}
	if c.Watchdog {
		l.device("i6300esb", "bus=pcie.0")
		l.add("-action", "watchdog=reset")
	}
	if c.Monitor && c.Architecture == AMD64 {
		l.device("VGA", "bus=pcie.0")
	} else if c.Monitor {
		l.device("ramfb")
	}
	names := make([]string, 0, len(c.Files))
	for name := range c.Files {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		file := contentFile(l.folder, i)
		if err := os.WriteFile(file, c.Files[name], 0o600); err != nil {
			return fmt.Errorf("write the file %s for fw_cfg: %w", name, err)
		}
		l.add("-fw_cfg", "name="+escape(name)+",file="+escape(file))
	}
	l.add(c.Arguments...)
	return nil
}
