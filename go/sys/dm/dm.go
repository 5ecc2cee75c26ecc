// Package dm makes block devices out of others with the kernel's device mapper, by
// its ioctls on /dev/mapper/control (Linux, include/uapi/linux/dm-ioctl.h and
// Documentation/admin-guide/device-mapper).
//
// The device mapper counts in sectors of 512 bytes, whatever the block size of the
// devices. Device nodes are devtmpfs's, /dev/dm-0 and so on, which are there as
// soon as a device has its first table: there is no udev to wait for.
package dm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// SectorSize is the size in bytes of the sectors in which tables count.
const SectorSize = 512

const (
	// controlPath is the device that takes the ioctls.
	controlPath = "/dev/mapper/control"
	// maxName is how long a device's name may be, in bytes.
	maxName = 127
	// maxParameters bounds the parameters of a target, in bytes.
	maxParameters = 4096
	// answerSize is room for a table or a status, in bytes.
	answerSize = 16 << 10
	// version is that of the interface: every kernel since 2.6 has it, and newer
	// minor versions.
	versionMajor = 4
)

// Target is a piece of a device, and one line of its table.
type Target struct {
	// Start and Length are in sectors of 512 bytes.
	Start, Length uint64
	// Type is the kernel's name of the target, such as "crypt".
	Type string
	// Parameters are what the target takes, with blanks between them. A table can
	// be read by others: never put a key here.
	Parameters string
}

// Device is a device as the kernel knows it.
type Device struct {
	// Name is the one that it was created with.
	Name string
	// Path is its device node.
	Path string
	// Opens counts who has it open, other devices and mounts among them.
	Opens int
	// Suspended says that it holds what is read and written until it is resumed.
	Suspended bool
}

// ErrNone is wrapped by errors about a device that isn't there.
var ErrNone = errors.New("there is no such device")

// Mapper is the kernel's device mapper.
type Mapper struct{ control *os.File }

// Open opens the device mapper. It takes root.
func Open() (*Mapper, error) {
	control, err := os.OpenFile(controlPath, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open the device mapper: %w", err)
	}
	return &Mapper{control}, nil
}

// Close lets go of the device mapper. Devices stay.
func (m *Mapper) Close() error { return m.control.Close() }

// Create makes a device without a table, which can't be used yet.
func (m *Mapper) Create(name string) error {
	_, _, err := m.call(unix.DM_DEV_CREATE, "create", name, 0, nil, 0)
	return err
}

// Load gives a device a table, which counts from the next Resume on.
func (m *Mapper) Load(name string, table ...Target) error {
	encoded, err := encodeTable(table)
	if err != nil {
		return fmt.Errorf("load a table of the device %s: %w", name, err)
	}
	_, _, err = m.call(unix.DM_TABLE_LOAD, "load a table of", name, 0, encoded, uint32(len(table)))
	return err
}

// Resume has a device use the table that was loaded last, and go on.
func (m *Mapper) Resume(name string) (Device, error) {
	d, _, err := m.call(unix.DM_DEV_SUSPEND, "resume", name, 0, nil, 0)
	return d, err
}

// Suspend writes out what the device and a file system on it hold, and has it wait.
func (m *Mapper) Suspend(name string) error {
	_, _, err := m.call(unix.DM_DEV_SUSPEND, "suspend", name, unix.DM_SUSPEND_FLAG, nil, 0)
	return err
}

// Interrupt is Suspend without writing anything out: what is on its way stays
// until there is another table.
func (m *Mapper) Interrupt(name string) error {
	flags := uint32(unix.DM_SUSPEND_FLAG | unix.DM_NOFLUSH_FLAG | unix.DM_SKIP_LOCKFS_FLAG)
	_, _, err := m.call(unix.DM_DEV_SUSPEND, "interrupt", name, flags, nil, 0)
	return err
}

// Remove takes a device away. One that isn't there is removed already.
func (m *Mapper) Remove(name string) error {
	_, _, err := m.call(unix.DM_DEV_REMOVE, "remove", name, 0, nil, 0)
	if errors.Is(err, ErrNone) {
		return nil
	}
	return err
}

// Device tells what the kernel knows of a device.
func (m *Mapper) Device(name string) (Device, error) {
	d, _, err := m.call(unix.DM_DEV_STATUS, "look at", name, 0, nil, 0)
	return d, err
}

// Table returns the table that a device uses.
func (m *Mapper) Table(name string) ([]Target, error) {
	return m.targets("read the table of", name, unix.DM_STATUS_TABLE_FLAG)
}

// Status returns a device's table with what each target says of its state in place
// of its parameters.
func (m *Mapper) Status(name string) ([]Target, error) {
	return m.targets("read the status of", name, unix.DM_NOFLUSH_FLAG)
}

func (m *Mapper) targets(what, name string, flags uint32) ([]Target, error) {
	answer := make([]byte, answerSize)
	_, count, err := m.call(unix.DM_TABLE_STATUS, what, name, flags, answer, 0)
	if err != nil {
		return nil, err
	}
	targets, err := decodeTable(answer, count)
	if err != nil {
		return nil, fmt.Errorf("%s the device %s: %w", what, name, err)
	}
	return targets, nil
}

// call makes one ioctl on a device. What follows the header comes back in data;
// count is the number of targets before and after.
func (m *Mapper) call(request uintptr, what, name string, flags uint32, data []byte, count uint32) (Device, uint32, error) {
	failed := func(err error) (Device, uint32, error) {
		return Device{}, 0, fmt.Errorf("%s the device %s: %w", what, name, err)
	}
	if name == "" || len(name) > maxName || strings.ContainsAny(name, "\x00/") {
		return failed(errors.New("it can't have this name"))
	}
	header := unix.DmIoctl{
		Version: [3]uint32{versionMajor, 0, 0}, Data_size: uint32(unix.SizeofDmIoctl + len(data)),
		Data_start: unix.SizeofDmIoctl, Target_count: count, Flags: flags,
	}
	copy(header.Name[:], name)
	buffer, err := binary.Append(nil, binary.NativeEndian, &header)
	if err != nil {
		return failed(err)
	}
	buffer = append(buffer, data...)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, m.control.Fd(), request, uintptr(unsafe.Pointer(&buffer[0]))); errno == unix.ENXIO {
		return failed(ErrNone)
	} else if errno != 0 {
		return failed(errno)
	}
	if _, err := binary.Decode(buffer, binary.NativeEndian, &header); err != nil {
		return failed(err)
	}
	if header.Flags&unix.DM_BUFFER_FULL_FLAG != 0 {
		return failed(errors.New("the kernel's answer is too long"))
	}
	copy(data, buffer[unix.SizeofDmIoctl:])
	return Device{
		Name:      name,
		Path:      fmt.Sprintf("/dev/dm-%d", unix.Minor(header.Dev)),
		Opens:     int(header.Open_count),
		Suspended: header.Flags&unix.DM_SUSPEND_FLAG != 0,
	}, header.Target_count, nil
}

// encodeTable writes a table as the kernel reads it: each target followed by its
// parameters, a zero byte, and more zeros up to a multiple of 8 bytes.
func encodeTable(table []Target) ([]byte, error) {
	if len(table) == 0 {
		return nil, errors.New("the table is empty")
	}
	var encoded []byte
	for _, t := range table {
		spec := unix.DmTargetSpec{Sector_start: t.Start, Length: t.Length}
		if len(t.Type) >= len(spec.Target_type) || len(t.Parameters) > maxParameters || strings.Contains(t.Parameters, "\x00") {
			return nil, fmt.Errorf("a target of the type %q can't be written", t.Type)
		}
		copy(spec.Target_type[:], t.Type)
		size := (unix.SizeofDmTargetSpec + len(t.Parameters) + 1 + 7) &^ 7
		spec.Next = uint32(size)
		end := len(encoded) + size
		var err error
		if encoded, err = binary.Append(encoded, binary.NativeEndian, &spec); err != nil {
			return nil, err
		}
		encoded = append(encoded, t.Parameters...)
		encoded = append(encoded, make([]byte, end-len(encoded))...)
	}
	return encoded, nil
}

// decodeTable reads a table as the kernel writes it. There the offset of the next
// target is from the beginning of all.
func decodeTable(encoded []byte, count uint32) ([]Target, error) {
	var targets []Target
	at := 0
	for range count {
		if at < 0 || at > len(encoded)-unix.SizeofDmTargetSpec {
			return nil, errors.New("the kernel's answer ends too early")
		}
		var spec unix.DmTargetSpec
		if _, err := binary.Decode(encoded[at:], binary.NativeEndian, &spec); err != nil {
			return nil, err
		}
		parameters, _, ok := bytes.Cut(encoded[at+unix.SizeofDmTargetSpec:], []byte{0})
		if !ok {
			return nil, errors.New("the kernel's answer ends too early")
		}
		targets = append(targets, Target{spec.Sector_start, spec.Length, unix.ByteSliceToString(spec.Target_type[:]), string(parameters)})
		at = int(spec.Next)
	}
	return targets, nil
}
