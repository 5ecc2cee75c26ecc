// Package smbios reads the strings in which a machine's firmware says who made
// the machine, and tells from them which cloud it is in.
//
// The kernel shows them below /sys/class/dmi/id, and the structures that hold them
// below /sys/firmware/dmi/entries: see its Documentation/ABI/testing files
// sysfs-class-dmi and sysfs-firmware-dmi-entries, and SMBIOS itself, DMTF's DSP0134.
// A machine need not have any.
//
// Whoever makes a machine, or runs it as a virtual one, chooses these strings. They
// say where it may be worthwhile to ask for something, and prove nothing.
package smbios

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"powercloud.unidatum.com/go/sys/bounded"
)

// Cloud is a cloud that machines can be in.
type Cloud string

// The clouds that are told apart. Their values are names for people.
const (
	// None is everything else: a machine of one's own, or another cloud.
	None        Cloud = ""
	AWS         Cloud = "AWS"
	GoogleCloud Cloud = "Google Cloud"
	Azure       Cloud = "Azure"
)

const (
	// maxAttribute is how many bytes of a file in /sys/class/dmi/id are read: a page,
	// which is all that the kernel gives.
	maxAttribute = 4 << 10
	// maxStructure is how many bytes of a structure are read. SMBIOS's tables have
	// no more than 64 KiB in their first form, and no structure that is read here
	// comes near.
	maxStructure = 64 << 10
	// maxString is how many bytes of a string are kept.
	maxString = 256
)

// Strings are what the firmware says; "" is what it doesn't.
type Strings struct {
	// Vendor and Product are the manufacturer and the name of the system.
	Vendor, Product string
	// ChassisTag is the asset tag of the chassis.
	ChassisTag string
}

// Cloud returns the cloud that the strings name:
//
//   - AWS: the system's vendor is "Amazon EC2", on every instance of the Nitro system.
//     AWS's page names the UUID's first letters, which others can have by chance, and
//     which some firmware turns round; systemd (src/basic/virt.c) goes by the vendor.
//     https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/identify_ec2_instances.html
//   - Google Cloud: the system's product name is "Google Compute Engine".
//     https://cloud.google.com/compute/docs/instances/detect-compute-engine
//     The vendor "Google" alone doesn't tell: Chromebooks have it as well.
//   - Azure: the chassis's asset tag is that of Azure; the vendor, "Microsoft
//     Corporation", is that of every Hyper-V.
//     https://learn.microsoft.com/en-us/azure/automation/troubleshoot/update-agent-issues-linux#dmidecode-check
func (s Strings) Cloud() Cloud {
	switch {
	case s.Vendor == "Amazon EC2":
		return AWS
	case s.Product == "Google Compute Engine":
		return GoogleCloud
	case s.ChassisTag == "7783-7084-3265-9085-8269-3286-77":
		return Azure
	}
	return None
}

// A place is where one of the strings is.
type place struct {
	// attribute is its file below class/dmi/id.
	attribute string
	// kind is the type of its structure, and offset where the structure has the
	// string's number (DSP0134, sections 7.2 and 7.4).
	kind   byte
	offset int
}

// Read reads the strings; sysfs is where the file system of that name is mounted, as
// a rule /sys. A machine without SMBIOS has none, which is no error. With an error,
// it returns those that could be read.
func Read(sysfs string) (Strings, error) {
	var s Strings
	var failures []error
	for _, one := range []struct {
		to *string
		place
	}{
		{&s.Vendor, place{"sys_vendor", 1, 0x04}},
		{&s.Product, place{"product_name", 1, 0x05}},
		{&s.ChassisTag, place{"chassis_asset_tag", 3, 0x08}},
	} {
		text, err := one.read(sysfs)
		if err != nil {
			failures = append(failures, fmt.Errorf("read %s of SMBIOS: %w", one.attribute, err))
		}
		*one.to = text
	}
	return s, errors.Join(failures...)
}

// read reads one string: from its own file or, as that is missing where the kernel
// was built without it, from its structure.
func (p place) read(sysfs string) (string, error) {
	b, err := bounded.ReadFile(filepath.Join(sysfs, "class/dmi/id", p.attribute), maxAttribute)
	if err == nil {
		return plain(b), nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	b, err = bounded.ReadFile(filepath.Join(sysfs, "firmware/dmi/entries", fmt.Sprintf("%d-0", p.kind), "raw"), maxStructure)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	}
	return structureString(b, p.kind, p.offset)
}

// errStructure says that a structure isn't as SMBIOS has it.
var errStructure = errors.New("the structure is damaged")

// structureString returns one of a structure's strings. A structure is its type, its
// length, a handle of two bytes, and fields; the strings come after them, each with a
// zero byte at its end, and one more zero byte after the last. The field at offset has
// the string's number, from 1 on, or 0 where there is no string (DSP0134, section
// 6.1).
func structureString(b []byte, kind byte, offset int) (string, error) {
	if len(b) < 4 || b[0] != kind || b[1] < 4 || int(b[1]) > len(b) {
		return "", errStructure
	}
	fields, rest := b[:b[1]], b[b[1]:]
	// Older versions of SMBIOS have shorter structures.
	if offset >= len(fields) || fields[offset] == 0 {
		return "", nil
	}
	for number := fields[offset]; ; number-- {
		text, after, found := strings.Cut(string(rest), "\x00")
		if !found || text == "" {
			return "", errStructure
		}
		if number == 1 {
			return plain([]byte(text)), nil
		}
		rest = []byte(after)
	}
}

// plain makes a line of text of what the firmware says.
func plain(b []byte) string {
	text := strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII || unicode.IsControl(r) && r != '\n' {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(string(b), "?"))
	text = strings.TrimSpace(text)
	text, _, _ = strings.Cut(text[:min(len(text), maxString)], "\n")
	return text
}
