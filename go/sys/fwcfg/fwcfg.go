// Package fwcfg reads files that QEMU hands to a virtual machine through its fw_cfg
// device: what follows -fw_cfg on its command line.
//
// The kernel shows them below /sys/firmware/qemu_fw_cfg; see its
// Documentation/ABI/testing/sysfs-firmware-qemu_fw_cfg, and QEMU's
// docs/specs/fw_cfg.rst. Names given by users begin with "opt/".
package fwcfg

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
)

// ErrNone says that there is no file of that name: QEMU has handed over none, or the
// machine isn't one of QEMU's.
var ErrNone = errors.New("QEMU hands over no such file")

// Read returns the first bytes of a file, at most as many as limit; the rest isn't
// read. The name is the one that QEMU was given, such as "opt/powercloud/join". Sysfs
// is where the file system of that name is mounted, as a rule /sys.
func Read(sysfs, name string, limit int) ([]byte, error) {
	// The names below by_name are links to by_key; none leads out of the folder.
	f, err := os.OpenInRoot(filepath.Join(sysfs, "firmware/qemu_fw_cfg"), path.Join("by_name", name, "raw"))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, ErrNone
	case err != nil:
		return nil, fmt.Errorf("open the file %s that QEMU hands over: %w", name, err)
	}
	// With room for all of it from the beginning, the buffer leaves no copies behind of
	// what may be a secret.
	content := bytes.NewBuffer(make([]byte, 0, limit+bytes.MinRead))
	_, err = content.ReadFrom(io.LimitReader(f, int64(limit)))
	if err = errors.Join(err, f.Close()); err != nil {
		clear(content.Bytes())
		return nil, fmt.Errorf("read the file %s that QEMU hands over: %w", name, err)
	}
	return content.Bytes(), nil
}
