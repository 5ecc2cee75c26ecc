// Package powerbutton waits for somebody to press the machine's power button.
// For a virtual machine that is how its host asks it to stop.
//
// See the kernel's Documentation/input/input.rst and uapi/linux/input.h.
package powerbutton

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// Devices is where input devices are.
	Devices = "/dev/input"

	eventKey = 1   // EV_KEY
	keyPower = 116 // KEY_POWER
	pressed  = 1
	// eventSize is the size of struct input_event on 64-bit machines: two
	// 64-bit words of time, type, code, value.
	eventSize = 24
	// keyBits are the bytes of a device's bit field of keys, up to KEY_MAX.
	keyBits = 96
)

// ErrNone is returned when no input device has a power key.
var ErrNone = errors.New("the machine has no power button")

// Wait returns nil when a power button was pressed, ErrNone when there is none,
// and ctx's error when ctx is done.
func Wait(ctx context.Context, devices string) error {
	buttons, err := open(devices)
	if err != nil {
		return err
	}
	presses := make(chan error, len(buttons))
	for _, b := range buttons {
		go func() { presses <- read(b) }()
	}
	defer func() {
		// This ends the reads.
		for _, b := range buttons {
			_ = b.Close()
		}
	}()
	var failures []error
	for range buttons {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-presses:
			if err == nil {
				return nil
			}
			failures = append(failures, err)
		}
	}
	return fmt.Errorf("wait for the power button: %w", errors.Join(failures...))
}

// open opens the devices that have a power key.
func open(devices string) ([]*os.File, error) {
	names, err := filepath.Glob(filepath.Join(devices, "event*"))
	if err != nil {
		return nil, fmt.Errorf("look for the power button: %w", err)
	}
	var buttons []*os.File
	for _, name := range names {
		// Not blocking, so that Go's poller can end a read.
		fd, err := unix.Open(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		if !hasPowerKey(fd) {
			_ = unix.Close(fd)
			continue
		}
		buttons = append(buttons, os.NewFile(uintptr(fd), name))
	}
	if len(buttons) == 0 {
		return nil, ErrNone
	}
	return buttons, nil
}

// hasPowerKey asks a device for the keys that it has: EVIOCGBIT(EV_KEY, size).
func hasPowerKey(fd int) bool {
	var bits [keyBits]byte
	const read, size, group, number = 2, keyBits, 'E', 0x20 + eventKey
	request := uintptr(read<<30 | size<<16 | group<<8 | number)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(&bits)))
	return errno == 0 && bits[keyPower/8]&(1<<(keyPower%8)) != 0
}

// read returns nil at the first press of the power key.
func read(device *os.File) error {
	b := make([]byte, 64*eventSize)
	for {
		n, err := device.Read(b)
		if err != nil {
			return fmt.Errorf("read %s: %w", strings.TrimPrefix(device.Name(), "/"), err)
		}
		if isPress(b[:n]) {
			return nil
		}
	}
}

// isPress tells whether events have a press of the power key among them.
func isPress(events []byte) bool {
	for ; len(events) >= eventSize; events = events[eventSize:] {
		kind := binary.NativeEndian.Uint16(events[16:])
		code := binary.NativeEndian.Uint16(events[18:])
		value := binary.NativeEndian.Uint32(events[20:])
		if kind == eventKey && code == keyPower && value == pressed {
			return true
		}
	}
	return false
}
