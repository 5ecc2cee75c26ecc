package pstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// Ended is the reason in records of Save's: a program ended, and not the kernel.
	Ended = "Program ended"
	// Variables is where the firmware's variables are shown.
	Variables = "/sys/firmware/efi/efivars"

	// MaxWords is how many bytes of words Save writes.
	MaxWords = maxRecord - len(header)

	// header begins a record: the only one, and its only part.
	header = Ended + "#1 Part1\n"
	// vendor is the GUID of the kernel's variables with dumps, LINUX_EFI_CRASH_GUID.
	vendor = "cfc8fc79-be2e-4ddc-97f0-9f98bfe298a0"
	// attributes are non-volatile, and accessible to boot and runtime services: the
	// kernel's PSTORE_EFI_ATTRIBUTES.
	attributes = 0x7
	// maxRecord is how many bytes of a variable the kernel reads.
	maxRecord = 1024
)

// Save writes a program's last words into a variable of the firmware's, below a folder
// that is Variables but in tests, in the form of a dump of the kernel's: at its next
// start, the kernel shows it among those. The words are lines in the kernel log's form.
// Of more than MaxWords, since a variable has at most 1 KiB, the end is left out.
//
// The form is that of drivers/firmware/efi/efi-pstore.c in Linux 6.1.
func Save(dir string, at time.Time, words string) error {
	path := filepath.Join(dir, variable(at))
	// A variable that is there already may be the kernel's own.
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("save last words in the firmware: %w", err)
	}
	// The file system takes a variable in one write alone.
	_, err = file.Write(record(words))
	if err = errors.Join(err, file.Close()); err != nil {
		_ = os.Remove(path) // It has no content, and may be gone already.
		return fmt.Errorf("save last words in the firmware: %w", err)
	}
	return nil
}

// variable is the name of the file for the variable: type (0 is a dump), part, count,
// seconds since 1970, and that it isn't compressed.
func variable(at time.Time) string {
	return fmt.Sprintf("dump-type0-1-1-%d-D-%s", at.Unix(), vendor)
}

// record is a variable's content, after its attributes.
func record(words string) []byte {
	data := header + words
	if len(data) > maxRecord {
		data = data[:maxRecord]
		// A line that is cut would be taken for another.
		data = data[:strings.LastIndexByte(data, '\n')+1]
	}
	return append(binary.LittleEndian.AppendUint32(nil, attributes), data...)
}
