package recovery

import (
	"testing"

	"powercloud.unidatum.com/tests/machine"
)

// TestHardwareWatchdog has the kernel stand still, and with it its own watchdog: the one
// in the machine's chipset resets the machine. QEMU says that it was that one.
func TestHardwareWatchdog(t *testing.T) {
	ctx := machine.Patient(t)
	config := sabotaged(t)
	config.Debugger = true
	m := machine.Start(ctx, t, config)
	m.Expect(ctx, `the watchdog runs" watchdog=iTCO_wdt software=false timeout=1m0s`)
	m.Expect(ctx, `is waiting to be enrolled`)
	// It takes minutes of the machine's own time.
	ctx = machine.Patient(t)
	m.Freeze(ctx)
	m.WaitWatchdog(ctx)
	m.WaitReset(ctx)
	ctx = machine.Patient(t)
	m.Expect(ctx, `pcinit begins`)
	m.Expect(ctx, `is waiting to be enrolled`)
}

// TestSoftwareWatchdog has PID 1 alone stand still, since another program takes all of
// the processors, in a machine whose chipset has a watchdog that never resets it. The
// kernel's own does, by its timer's interrupt, which no program holds up.
func TestSoftwareWatchdog(t *testing.T) {
	ctx := machine.Patient(t)
	config := sabotaged(t)
	config.NoReboot = true
	m := machine.Start(ctx, t, config)
	m.Expect(ctx, `the watchdog runs" watchdog=iTCO_wdt software=false timeout=1m0s`)
	m.Expect(ctx, `the watchdog runs" watchdog="Software Watchdog" software=true timeout=45s`)
	m.Expect(ctx, `is waiting to be enrolled`)
	ctx = machine.Patient(t)
	order(t, m, "starve")
	m.Expect(ctx, `softdog: Initiating system reboot`)
	m.WaitReset(ctx)
	ctx = machine.Patient(t)
	m.Expect(ctx, `pcinit begins`)
	m.Expect(ctx, `is waiting to be enrolled`)
}
