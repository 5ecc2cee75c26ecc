package main

import (
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
		say("tpm", fmt.Sprintf("%s version %s pcr0 %s", filepath.Base(tpm), text(tpm+"/tpm_version_major"), text(tpm+"/pcr-sha256/0")))
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
