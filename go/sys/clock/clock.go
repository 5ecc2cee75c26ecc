// Package clock sets the machine's clock. See adjtimex(2) and RFC 5905.
package clock

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// MaxPLL is the largest offset that the kernel's phase-locked loop takes: it
	// also learns from it how fast the clock runs.
	MaxPLL = 500 * time.Millisecond

	// Modes and states of adjtimex(2), for Linux.
	adjOffset     = 0x0001
	adjMaxError   = 0x0004
	adjEstError   = 0x0008
	adjStatus     = 0x0010
	adjTimeConst  = 0x0020
	adjSetOffset  = 0x0100
	adjNano       = 0x2000
	adjSingleShot = 0x8001

	statePLL      = 0x0001
	stateUnsynced = 0x0040
	stateNano     = 0x2000

	// singleShotRate is the rate, in parts per million, at which the kernel
	// corrects a larger offset.
	singleShotRate = 500
)

// Machine is the machine's clock.
type Machine struct{}

// Now returns the time.
func (Machine) Now() time.Time { return time.Now() }

// Step moves the clock by an offset, at once.
func (Machine) Step(offset time.Duration) error {
	t := step(offset)
	if _, err := unix.Adjtimex(&t); err != nil {
		return fmt.Errorf("set the clock by %v: %w", offset, err)
	}
	return nil
}

// step fills in a step: the fraction of a second is never negative.
func step(offset time.Duration) unix.Timex {
	seconds := offset / time.Second
	rest := offset % time.Second
	if rest < 0 {
		seconds, rest = seconds-1, rest+time.Second
	}
	return unix.Timex{Modes: adjSetOffset | adjNano, Time: unix.Timeval{Sec: int64(seconds), Usec: int64(rest)}}
}

// Slew has the clock run faster or slower until an offset is gone, without a
// jump. Up to MaxPLL it is the kernel's loop that does it, and that learns the
// clock's rate; what is more goes at half a millisecond a second. Poll is how
// long it will be until the next measurement, and error how far off this one can
// be. From then on the kernel takes the clock for right, and sets the one that
// runs while the machine is off by it.
func (Machine) Slew(offset, poll, maxError time.Duration) error {
	t := slew(offset, poll, maxError)
	if _, err := unix.Adjtimex(&t); err != nil {
		return fmt.Errorf("correct the clock by %v: %w", offset, err)
	}
	if t.Modes == adjSingleShot {
		return Machine{}.trust(maxError)
	}
	return nil
}

func slew(offset, poll, maxError time.Duration) unix.Timex {
	if offset.Abs() > MaxPLL {
		return unix.Timex{Modes: adjSingleShot, Offset: offset.Microseconds()}
	}
	return unix.Timex{
		Modes:    adjOffset | adjStatus | adjTimeConst | adjMaxError | adjEstError | adjNano,
		Status:   statePLL | stateNano,
		Offset:   offset.Nanoseconds(),
		Constant: timeConstant(poll),
		Maxerror: maxError.Microseconds(),
		Esterror: offset.Abs().Microseconds(),
	}
}

// trust tells the kernel that the clock is right.
func (Machine) trust(maxError time.Duration) error {
	t := unix.Timex{Modes: adjStatus | adjMaxError, Status: statePLL | stateNano, Maxerror: maxError.Microseconds()}
	if _, err := unix.Adjtimex(&t); err != nil {
		return fmt.Errorf("tell the kernel that the clock is right: %w", err)
	}
	return nil
}

// timeConstant is how fast the loop follows: the power of two of the poll
// interval in units of 16 s, as RFC 5905 has it.
func timeConstant(poll time.Duration) int64 {
	constant := int64(0)
	for p := poll / (16 * time.Second); p > 1 && constant < 10; p /= 2 {
		constant++
	}
	return constant
}

// Synced tells whether the kernel takes the clock for right.
func (Machine) Synced() (bool, error) {
	var t unix.Timex
	if _, err := unix.Adjtimex(&t); err != nil {
		return false, fmt.Errorf("ask for the clock's state: %w", err)
	}
	return t.Status&stateUnsynced == 0, nil
}

// SlewTime returns how long a slew takes at least that is beyond MaxPLL.
func SlewTime(offset time.Duration) time.Duration { return offset.Abs() / singleShotRate * 1_000_000 }
