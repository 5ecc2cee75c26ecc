// Guest is the init of machines in the tests of package machine. It tells on
// the console what the machine has, and then does what it is told there, a line
// each:
//
//	report              tells again what the machine has
//	address CARD A/N    gives a network card an IPv4 address with a prefix length
//	serve PORT          answers each TCP connection with a line
//	fetch ADDRESS       reads a line from a TCP connection
//	save TEXT           writes the text to the first bytes of every disk
//	watchdog SECONDS    starts the watchdog, and never feeds it
//	crash               has the kernel panic
//	poweroff, reboot
//
// Each of its lines begins with "guest: ".
package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

func main() {
	for _, err := range []error{
		mount("proc", "/proc", "proc"),
		mount("sysfs", "/sys", "sysfs"),
		mount("devtmpfs", "/dev", "devtmpfs"),
	} {
		if err != nil {
			say("error", err.Error())
		}
	}
	loadModules()
	_ = mount("efivarfs", "/sys/firmware/efi/efivars", "efivarfs") // There may be no UEFI.
	_ = mount("pstore", "/sys/fs/pstore", "pstore")                // Nor this.
	go watchPowerButton()
	report()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 0 {
			continue
		}
		if err := obey(words[0], words[1:]); err != nil {
			say("error", err.Error())
		}
	}
	say("error", fmt.Sprintf("the console ended: %v", lines.Err()))
	select {}
}

// say writes a line.
func say(what, text string) { fmt.Printf("guest: %s %s\n", what, text) }

func mount(source, target, kind string) error {
	if err := os.MkdirAll(target, 0o755); err != nil && !os.IsExist(err) {
		return err
	}
	return unix.Mount(source, target, kind, 0, "")
}

// loadModules loads the modules that were put into the initramfs, whose names
// sort them.
func loadModules() {
	files, _ := filepath.Glob("/modules/*.ko")
	for _, name := range files {
		file, err := os.Open(name)
		if err == nil {
			err = unix.FinitModule(int(file.Fd()), "", 0)
			_ = file.Close() // It was only read.
		}
		if err != nil && err != unix.EEXIST {
			say("error", fmt.Sprintf("load %s: %v", name, err))
		}
	}
}

// obey does what a line says.
func obey(command string, words []string) error {
	argument := strings.Join(words, " ")
	switch command {
	case "report":
		report()
	case "address":
		return setAddress(words)
	case "serve":
		return serve(argument)
	case "fetch":
		return fetch(argument)
	case "save":
		return save(argument)
	case "watchdog":
		return startWatchdog(argument)
	case "crash":
		return os.WriteFile("/proc/sysrq-trigger", []byte("c"), 0)
	case "poweroff":
		return unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	case "reboot":
		return unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART)
	default:
		return fmt.Errorf("there is no command %q", command)
	}
	return nil
}
