// Package watchdog drives the device that resets the machine unless somebody
// says at least every so often that all is well.
//
// See the kernel's Documentation/watchdog/watchdog-api.rst.
package watchdog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// Class is where the kernel lists watchdogs.
	Class = "/sys/class/watchdog"
	// softwareName is what the kernel's own software watchdog calls itself. It
	// helps only as long as the kernel runs.
	softwareName = "Software Watchdog"
	// cardReset says in the boot status that the watchdog had reset the machine.
	cardReset = 0x20
)

// ErrNone is returned by Find when the machine has no watchdog at all.
var ErrNone = errors.New("the machine has no watchdog")

// Found is a watchdog that could be opened.
type Found struct {
	// Name is the device's, such as "watchdog0".
	Name string
	// Identity is what its driver calls it.
	Identity string
	// Software is whether it is the kernel's own.
	Software bool
	// Running is whether it runs already, since the firmware started it. The kernel
	// feeds it only for a while.
	Running bool
	// CausedReset is whether it was this watchdog that last reset the machine,
	// as far as its driver can tell.
	CausedReset bool
}

// Find returns the watchdogs that a folder lists, Class but for tests: hardware
// before software, and else by name.
func Find(class string) ([]Found, error) {
	entries, err := os.ReadDir(class)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("look for watchdogs: %w", err)
	}
	var all []Found
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), "watchdog") {
			continue
		}
		attribute := func(name string) string {
			// What a driver doesn't tell isn't so.
			content, _ := os.ReadFile(filepath.Join(class, entry.Name(), name))
			return strings.TrimSpace(string(content))
		}
		found := Found{Name: entry.Name(), Identity: attribute("identity"), Running: attribute("state") == "active"}
		if found.Identity == "" {
			continue
		}
		found.Software = found.Identity == softwareName
		bits, err := strconv.ParseUint(attribute("bootstatus"), 0, 32)
		found.CausedReset = err == nil && bits&cardReset != 0
		all = append(all, found)
	}
	if len(all) == 0 {
		return nil, ErrNone
	}
	slices.SortStableFunc(all, func(a, b Found) int {
		switch {
		case a.Software == b.Software:
			return 0
		case b.Software:
			return -1
		}
		return 1
	})
	return all, nil
}

// Watchdog is a device that runs.
type Watchdog struct {
	file    *os.File
	timeout time.Duration
}

// Open starts a watchdog: from now on the machine is reset unless Ping is called
// more often than the timeout. A driver may choose another timeout than asked
// for, in whole seconds; Timeout says which.
func Open(path string, timeout time.Duration) (*Watchdog, error) {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("open the watchdog: %w", err)
	}
	w := &Watchdog{file: file, timeout: timeout}
	if err := w.SetTimeout(timeout); err != nil {
		// It runs with its own timeout. Closing it would leave it running and
		// unfed; the caller feeds it at the pace that its timeout asks for.
		seconds, getErr := unix.IoctlGetInt(int(file.Fd()), unix.WDIOC_GETTIMEOUT)
		if getErr != nil || seconds <= 0 {
			return nil, errors.Join(err, w.Disarm())
		}
		w.timeout = time.Duration(seconds) * time.Second
	}
	return w, nil
}

// SetTimeout changes after how long without a Ping the machine is reset.
func (w *Watchdog) SetTimeout(timeout time.Duration) error {
	seconds := max(int(timeout/time.Second), 1)
	if err := unix.IoctlSetPointerInt(int(w.file.Fd()), unix.WDIOC_SETTIMEOUT, seconds); err != nil {
		return fmt.Errorf("set the watchdog's timeout to %d s: %w", seconds, err)
	}
	w.timeout = time.Duration(seconds) * time.Second
	// The driver may have rounded it.
	if actual, err := unix.IoctlGetInt(int(w.file.Fd()), unix.WDIOC_GETTIMEOUT); err == nil && actual > 0 {
		w.timeout = time.Duration(actual) * time.Second
	}
	return nil
}

// Timeout returns after how long without a Ping the machine is reset.
func (w *Watchdog) Timeout() time.Duration { return w.timeout }

// Ping says that all is well. Any byte but V does.
func (w *Watchdog) Ping() error {
	if _, err := w.file.Write([]byte{0}); err != nil {
		return fmt.Errorf("feed the watchdog: %w", err)
	}
	return nil
}

// Disarm stops the watchdog, where its driver allows that, and closes it.
func (w *Watchdog) Disarm() error {
	_, err := w.file.Write([]byte{'V'})
	if err = errors.Join(err, w.file.Close()); err != nil {
		return fmt.Errorf("stop the watchdog: %w", err)
	}
	return nil
}
