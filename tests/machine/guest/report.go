package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// report tells what the machine has.
func report() {
	for _, disk := range glob("/sys/block/*") {
		name := filepath.Base(disk)
		// Loop devices and such are of no hardware.
		if device, err := filepath.EvalSymlinks(disk); err != nil || strings.Contains(device, "/virtual/") {
			continue
		}
		start, err := readStart("/dev/" + name)
		if err != nil {
			say("error", err.Error())
		}
		say("disk", fmt.Sprintf("%s driver %s sectors %s of %s begins %q", name, drivers(disk),
			text(disk+"/size"), text(disk+"/queue/logical_block_size"), start))
	}
	for _, card := range glob("/sys/class/net/*") {
		if driver := drivers(card); driver != "" {
			say("card", fmt.Sprintf("%s driver %s address %s carrier %s", filepath.Base(card), driver, text(card+"/address"), text(card+"/carrier")))
		}
	}
	for _, tpm := range glob("/sys/class/tpm/tpm*") {
		say("tpm", fmt.Sprintf("%s version %s resets %s pcr0 %s", filepath.Base(tpm), text(tpm+"/tpm_version_major"), resets("/dev/"+filepath.Base(tpm)), text(tpm+"/pcr-sha256/0")))
	}
	for _, file := range glob("/sys/firmware/qemu_fw_cfg/by_name/opt/*/*/raw") {
		say("file", fmt.Sprintf("%s holds %q", strings.TrimPrefix(filepath.Dir(file), "/sys/firmware/qemu_fw_cfg/by_name/"), text(file)))
	}
	if secure, err := os.ReadFile("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"); err == nil {
		say("secureboot", fmt.Sprint(secure[len(secure)-1]))
	}
	say("random", text("/sys/class/misc/hw_random/rng_current"))
	for _, record := range glob("/sys/fs/pstore/*") {
		say("pstore", fmt.Sprintf("%s mentions a crash %t", filepath.Base(record), strings.Contains(text(record), "sysrq triggered crash")))
	}
	if _, err := os.Stat("/sys/firmware/acpi/tables/DSDT"); err == nil {
		say("acpi", "yes")
	}
	say("ready", text("/proc/sys/kernel/osrelease"))
}

// glob lists the files that match a pattern that is right.
func glob(pattern string) []string {
	names, _ := filepath.Glob(pattern)
	return names
}

// text is the content of a small file in one line, or what kept it from being
// read.
func text(name string) string {
	content, err := os.ReadFile(name)
	if err != nil {
		return "(" + err.Error() + ")"
	}
	return strings.TrimSpace(string(content))
}

// drivers are the drivers of a device and of those that it is attached to, the
// nearest first.
func drivers(device string) string {
	path, err := filepath.EvalSymlinks(device)
	if err != nil {
		return ""
	}
	var names []string
	for ; path != "/sys/devices" && path != "/"; path = filepath.Dir(path) {
		if driver, err := filepath.EvalSymlinks(path + "/driver"); err == nil && filepath.Base(driver) != "pcieport" {
			names = append(names, filepath.Base(driver))
		}
	}
	return strings.Join(names, ",")
}

// resets returns how often a TPM was reset since it was made, which it knows
// only as long as its state is kept (Trusted Platform Module Library, part 3,
// TPM2_ReadClock).
func resets(device string) string {
	tpm, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return "(" + err.Error() + ")"
	}
	defer tpm.Close()
	if _, err := tpm.Write([]byte{0x80, 1, 0, 0, 0, 10, 0, 0, 1, 0x81}); err != nil {
		return "(" + err.Error() + ")"
	}
	answer := make([]byte, 64)
	n, err := tpm.Read(answer)
	// A header of 10 bytes, whose last four are 0, the time and the clock of
	// 8 bytes each, then the count.
	if err != nil || n < 30 || binary.BigEndian.Uint32(answer[6:]) != 0 {
		return fmt.Sprintf("(the TPM answered %x, %v)", answer[:n], err)
	}
	return fmt.Sprint(binary.BigEndian.Uint32(answer[26:]))
}
