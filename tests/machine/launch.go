package machine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"powercloud.unidatum.com/tests/machine/qmp"
	"powercloud.unidatum.com/tests/machine/variables"
)

// Files in the folder of a machine.
func variablesFile(folder string) string { return filepath.Join(folder, "variables.fd") }
func overlayFile(folder string, disk int) string {
	return filepath.Join(folder, fmt.Sprintf("disk%d.qcow2", disk))
}
func contentFile(folder string, i int) string {
	return filepath.Join(folder, fmt.Sprintf("file%d", i))
}
func tpmFolder(folder string) string { return filepath.Join(folder, "tpm") }

// prepare makes what lasts longer than the machine is on: disks, the firmware's
// variables and the TPM's state.
func prepare(config Config, t tools, folder string) error {
	if config.Firmware != Direct {
		_, blank := config.firmware(t)
		store, err := os.ReadFile(blank)
		if err != nil {
			return fmt.Errorf("read the firmware's empty store of variables: %w", err)
		}
		if len(config.Variables) > 0 {
			// AAVMF leaves it to the first start to format its store.
			if err := errors.Join(variables.Format(store), variables.Add(store, config.Variables...)); err != nil {
				return err
			}
		}
		if err := os.WriteFile(variablesFile(folder), store, 0o600); err != nil {
			return fmt.Errorf("write the firmware's variables: %w", err)
		}
	}
	for i, disk := range config.Disks {
		if err := overlay(t, overlayFile(folder, i), disk); err != nil {
			return fmt.Errorf("make disk %d: %w", i, err)
		}
	}
	if config.TPM {
		if err := os.Mkdir(tpmFolder(folder), 0o700); err != nil {
			return fmt.Errorf("make a folder for the TPM: %w", err)
		}
	}
	return nil
}

// overlay makes a file that takes what is written to a disk.
func overlay(t tools, path string, disk Disk) error {
	arguments := []string{"create", "-q", "-f", "qcow2"}
	if disk.Folder != "" {
		folder, err := filepath.Abs(disk.Folder)
		if err != nil {
			return err
		}
		arguments = []string{"convert", "-O", "qcow2", "--image-opts", "driver=vvfat,label=TEST,dir=" + escape(folder)}
	}
	if disk.Image != "" {
		image, err := filepath.Abs(disk.Image)
		if err != nil {
			return err
		}
		if _, err := os.Stat(image); err != nil {
			return err
		}
		arguments = append(arguments, "-F", "raw", "-b", image)
	}
	arguments = append(arguments, path)
	if disk.Size > 0 {
		arguments = append(arguments, fmt.Sprint(disk.Size))
	}
	if out, err := t.command("usr/bin/qemu-img", arguments...).CombinedOutput(); err != nil {
		return fmt.Errorf("qemu-img: %w: %s", err, out)
	}
	return nil
}

// enlarge makes a disk's overlay larger.
func enlarge(t tools, path string, size int64) error {
	if out, err := t.command("usr/bin/qemu-img", "resize", "-q", "-f", "qcow2", path, fmt.Sprint(size)).CombinedOutput(); err != nil {
		return fmt.Errorf("qemu-img: %w: %s", err, out)
	}
	return nil
}

// running is a machine that is on.
type running struct {
	qemu    *process
	tpm     *process // Or nil.
	monitor *qmp.Client
	console net.Conn
	port    net.Conn // Or nil.
	// debugger is where QEMU awaits GDB, or nil.
	debugger net.Conn
}

// launch switches a machine on that was prepared. It stays at its first
// instruction.
func launch(ctx context.Context, config Config, t tools, folder, accelerator string) (_ *running, err error) {
	l := &commandLine{config: config, tools: t, folder: folder}
	defer l.closeFiles()
	r := &running{}
	defer func() {
		if err != nil {
			r.end()
			if r.console != nil {
				_ = r.console.Close() // Nobody reads it.
			}
		}
	}()
	l.base(accelerator)
	l.firmware()
	connection, err := r.connect(l)
	if err != nil {
		return nil, err
	}
	defer func() {
		if r.monitor == nil {
			_ = connection.Close()
		}
	}()
	for i, disk := range config.Disks {
		l.disk(i, disk)
	}
	for i, card := range config.Cards {
		if err := l.card(i, card); err != nil {
			return nil, err
		}
	}
	if err := l.extras(); err != nil {
		return nil, err
	}
	if config.TPM {
		if r.tpm, err = l.startTPM(); err != nil {
			return nil, err
		}
	}
	if r.qemu, err = run(l.command()); err != nil {
		return nil, fmt.Errorf("start QEMU: %w", err)
	}
	// QEMU has its own; these would keep the sockets open after it ends.
	l.closeFiles()
	if r.monitor, err = qmp.New(ctx, connection); err != nil {
		if qmp.Ended(err) {
			<-r.qemu.done
			return nil, fmt.Errorf("QEMU did not start the machine: %w", r.qemu.failure())
		}
		return nil, err
	}
	return r, nil
}

// connect adds the serial ports, QEMU's debugger and its monitor, and returns this
// side of the last.
func (r *running) connect(l *commandLine) (monitor net.Conn, err error) {
	if r.console, err = l.connection("console"); err != nil {
		return nil, err
	}
	l.add("-serial", "chardev:console")
	if l.config.Port {
		if r.port, err = l.connection("port"); err != nil {
			return nil, err
		}
		if l.config.Architecture == AMD64 {
			l.add("-serial", "chardev:port")
		} else {
			// The first of the two takes the name ttyS0, which is among the
			// consoles of a kernel that was made for real machines too.
			l.add("-chardev", "null,id=nothing")
			l.device("pci-serial-2x", "chardev1=nothing", "chardev2=port", "bus=pcie.0")
		}
	}
	if l.config.Debugger {
		if r.debugger, err = l.connection("debugger"); err != nil {
			return nil, err
		}
		l.add("-gdb", "chardev:debugger")
	}
	if monitor, err = l.connection("monitor"); err != nil {
		return nil, err
	}
	l.add("-mon", "chardev=monitor,mode=control")
	return monitor, nil
}

// end pulls the plug of whatever is on.
func (r *running) end() {
	for _, p := range []*process{r.qemu, r.tpm} {
		if p != nil {
			p.kill()
		}
	}
	if r.monitor != nil {
		_ = r.monitor.Close() // The other end is gone.
	}
	for _, c := range []net.Conn{r.port, r.debugger} {
		if c != nil {
			_ = c.Close() // So is this one's.
		}
	}
}

// startTPM starts swtpm, and adds the TPM to the machine. The two talk over a
// pair of sockets of their own.
func (l *commandLine) startTPM() (*process, error) {
	qemu, swtpm, err := socketPair("tpm")
	if err != nil {
		return nil, err
	}
	defer swtpm.Close()
	command := l.tools.command("usr/bin/swtpm", "socket", "--tpm2",
		"--tpmstate", "dir="+tpmFolder(l.folder), "--ctrl", "type=unixio,clientfd=3", "--terminate")
	command.ExtraFiles = []*os.File{swtpm}
	p, err := run(command)
	if err != nil {
		_ = qemu.Close()
		return nil, fmt.Errorf("start swtpm: %w", err)
	}
	l.channel("tpm", qemu)
	l.add("-tpmdev", "emulator,id=tpm0,chardev=tpm")
	if l.config.Architecture == ARM64 {
		l.device("tpm-tis-device", "tpmdev=tpm0")
	} else {
		l.device("tpm-crb", "tpmdev=tpm0")
	}
	return p, nil
}

// connection adds a character device and returns the other end of it.
func (l *commandLine) connection(name string) (net.Conn, error) {
	ours, theirs, err := socketPair(name)
	if err != nil {
		return nil, err
	}
	defer ours.Close()
	l.channel(name, theirs)
	connection, err := net.FileConn(ours)
	if err != nil {
		return nil, fmt.Errorf("connect to QEMU: %w", err)
	}
	return connection, nil
}

// socketPair makes two connected sockets. They have no name that somebody could
// take or that could be left.
func socketPair(name string) (one, two *os.File, err error) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a pair of sockets: %w", err)
	}
	// A socket that doesn't block can be closed while somebody reads it.
	if err := syscall.SetNonblock(pair[0], true); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("set up a socket: %w", err), syscall.Close(pair[0]), syscall.Close(pair[1]))
	}
	return os.NewFile(uintptr(pair[0]), name), os.NewFile(uintptr(pair[1]), name), nil
}
