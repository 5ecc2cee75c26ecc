package machine

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/tests/machine/gdb"
	"powercloud.unidatum.com/tests/machine/qmp"
	"powercloud.unidatum.com/tests/machine/variables"
)

// A Machine is a virtual machine of a test. Its methods fail the test where
// they can't do what they say; call them from the test's own goroutine.
type Machine struct {
	t           testing.TB
	config      Config
	tools       tools
	accelerator string
	folder      string
	console     *Console
	// on is what runs, and nil while the machine is off.
	on       *running
	followed chan struct{}
}

// Start makes a machine and switches it on. When the test ends, nothing is left
// of it. Without Bazel, which unpacks QEMU, the test is skipped.
func Start(ctx context.Context, t testing.TB, config Config) *Machine {
	t.Helper()
	m := New(ctx, t, config)
	m.PowerOn(ctx)
	return m
}

// New makes a machine that is off.
func New(ctx context.Context, t testing.TB, config Config) *Machine {
	t.Helper()
	m := &Machine{t: t, tools: needTools(t), folder: folder(t, config.Name)}
	var err error
	if m.config, err = config.complete(); err != nil {
		t.Fatalf("make a machine: %v", err)
	}
	if m.accelerator, err = accelerator(ctx, m.config, m.tools); err != nil {
		t.Fatal(err)
	}
	if err := prepare(m.config, m.tools, m.folder); err != nil {
		t.Fatalf("make the machine %s: %v", m.config.Name, err)
	}
	m.console = newConsole(m.config.Name, m.consoleCopies())
	t.Cleanup(m.PowerOff)
	return m
}

// folder makes the folder for a machine's files.
func folder(t testing.TB, name string) string {
	t.Helper()
	kept := os.Getenv("MACHINE_KEEP")
	if kept == "" {
		return t.TempDir()
	}
	path, err := filepath.Abs(filepath.Join(kept, fileName(t, name)))
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		path, err = os.MkdirTemp(filepath.Dir(path), filepath.Base(path)+"-")
	}
	if err != nil {
		t.Fatalf("make a folder for a machine: %v", err)
	}
	t.Logf("the files of the machine are kept in %s", path)
	return path
}

// fileName is a name for a file of a machine that says whose it is.
func fileName(t testing.TB, machine string) string {
	return strings.Trim(strings.NewReplacer("/", "-", " ", "-").Replace(t.Name()+"-"+machine), "-")
}

// consoleCopies is where all that the console shows goes as well.
func (m *Machine) consoleCopies() io.Writer {
	m.t.Helper()
	files := []string{filepath.Join(m.folder, "console.log")}
	if outputs := os.Getenv("TEST_UNDECLARED_OUTPUTS_DIR"); outputs != "" {
		files = append(files, filepath.Join(outputs, fileName(m.t, m.config.Name)+"-console.log"))
	}
	var copies []io.Writer
	for _, name := range files {
		file, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			m.t.Fatalf("keep the console: %v", err)
		}
		m.t.Cleanup(func() { _ = file.Close() }) // It is only there to be looked at.
		copies = append(copies, file)
	}
	if os.Getenv("MACHINE_CONSOLE") == "1" {
		copies = append(copies, os.Stderr)
	}
	return io.MultiWriter(copies...)
}

// PowerOn switches the machine on, with its disks, its TPM and the firmware's
// variables as they were left.
func (m *Machine) PowerOn(ctx context.Context) {
	m.t.Helper()
	if m.on != nil {
		m.t.Fatalf("%s is on already", m.config.Name)
	}
	r, err := launch(ctx, m.config, m.tools, m.folder, m.accelerator)
	if err != nil {
		m.t.Fatalf("switch %s on: %v", m.config.Name, err)
	}
	m.on, m.followed = r, make(chan struct{})
	m.console.begin(r.console)
	go func(done chan struct{}) {
		defer close(done)
		m.console.follow(r.console)
		_ = r.console.Close() // It was read to its end.
	}(m.followed)
	m.execute(ctx, "cont", nil, nil)
}

// PowerOff pulls the plug. A machine that is off stays off.
func (m *Machine) PowerOff() {
	if m.on == nil {
		return
	}
	m.on.end()
	<-m.followed
	m.on = nil
}

// Move puts a disk, counted from 0, behind another controller. The machine must be
// off.
func (m *Machine) Move(disk int, to Controller) {
	m.t.Helper()
	if m.on != nil {
		m.t.Fatalf("%s is on: its disks can't be moved", m.config.Name)
	}
	config := m.config
	config.Disks = slices.Clone(config.Disks)
	config.Disks[disk].Controller = to
	var err error
	if m.config, err = config.complete(); err != nil {
		m.t.Fatalf("move a disk: %v", err)
	}
}

// SetClock changes what the machine's own clock says when it is switched on next. The
// machine must be off.
func (m *Machine) SetClock(to time.Time) {
	m.t.Helper()
	if m.on != nil {
		m.t.Fatalf("%s is on: its clock can't be set", m.config.Name)
	}
	m.config.Clock = to
}

// Enlarge gives a disk, counted from 0, a larger size in bytes. The machine must be off.
func (m *Machine) Enlarge(disk int, size int64) {
	m.t.Helper()
	if m.on != nil {
		m.t.Fatalf("%s is on: its disks can't be enlarged", m.config.Name)
	}
	if err := enlarge(m.tools, overlayFile(m.folder, disk), size); err != nil {
		m.t.Fatalf("enlarge a disk: %v", err)
	}
}

// Wait waits until the machine has switched itself off.
func (m *Machine) Wait(ctx context.Context) {
	m.t.Helper()
	if m.on == nil {
		return
	}
	select {
	case <-m.on.qemu.done:
		err := m.on.qemu.err
		said := m.on.qemu.said.String()
		m.PowerOff()
		if err != nil {
			m.t.Fatalf("QEMU ended by itself: %v: %s", err, said)
		}
	case <-ctx.Done():
		m.t.Fatalf("%s did not go off: %v; its console's last lines:\n%s", m.config.Name, context.Cause(ctx), m.console.Last(lastLines))
	}
}

// Console is the machine's first serial port. It stays the same one when the
// machine is switched off and on.
func (m *Machine) Console() *Console { return m.console }

// Expect waits until the console has text that the regular expression matches,
// after what the last call found, and returns the match and its groups.
func (m *Machine) Expect(ctx context.Context, pattern string) []string {
	m.t.Helper()
	expression, err := regexp.Compile(pattern)
	if err != nil {
		m.t.Fatal(err)
	}
	groups, err := m.console.Find(ctx, expression)
	if err != nil {
		said := ""
		if m.on != nil {
			said = m.on.qemu.said.String()
		}
		m.t.Fatalf("%v\nQEMU said: %q", err, said)
	}
	return groups
}

// Type types a line on the console.
func (m *Machine) Type(line string) {
	m.t.Helper()
	if _, err := io.WriteString(m.console, line+"\n"); err != nil {
		m.t.Fatalf("type %q on the console of %s: %v", line, m.config.Name, err)
	}
}

// Port is the second serial port, until the machine goes off.
func (m *Machine) Port() io.ReadWriter { return m.on.port }

// Monitor is the connection to QEMU, for whatever has no method here.
func (m *Machine) Monitor() *qmp.Client { return m.on.monitor }

// PowerButton presses the power button shortly.
func (m *Machine) PowerButton(ctx context.Context) {
	m.t.Helper()
	m.execute(ctx, "system_powerdown", nil, nil)
}

// Reset presses the reset button.
func (m *Machine) Reset(ctx context.Context) {
	m.t.Helper()
	m.execute(ctx, "system_reset", nil, nil)
}

// SetLink plugs the cable of the card of this number in, or pulls it.
func (m *Machine) SetLink(ctx context.Context, card int, up bool) {
	m.t.Helper()
	m.execute(ctx, "set_link", map[string]any{"name": fmt.Sprintf("card%d", card), "up": up}, nil)
}

// Unplug pulls a device, such as "disk0" or "card1", and waits until the system
// has let it go.
func (m *Machine) Unplug(ctx context.Context, device string) {
	m.t.Helper()
	m.execute(ctx, "device_del", map[string]any{"id": device}, nil)
	_, err := m.on.monitor.Wait(ctx, func(e qmp.Event) bool {
		return e.Name == "DEVICE_DELETED" && bytes.Contains(e.Data, []byte(`"device": "`+device+`"`))
	})
	if err != nil {
		m.t.Fatalf("unplug %s from %s: %v; its console's last lines:\n%s", device, m.config.Name, err, m.console.Last(lastLines))
	}
}

// WaitReset waits until the machine has been reset by itself, its watchdog or
// this test, once for each call, and returns when that was.
func (m *Machine) WaitReset(ctx context.Context) time.Time {
	m.t.Helper()
	reset, err := m.on.monitor.Wait(ctx, qmp.Named("RESET"))
	if err != nil {
		m.t.Fatalf("wait for %s to be reset: %v; its console's last lines:\n%s", m.config.Name, err, m.console.Last(lastLines))
	}
	return reset.Time
}

// WaitWatchdog waits until a watchdog of the machine's hardware finds that nobody feeds it,
// once for each call. It then resets the machine.
func (m *Machine) WaitWatchdog(ctx context.Context) {
	m.t.Helper()
	if _, err := m.on.monitor.Wait(ctx, qmp.Named("WATCHDOG")); err != nil {
		m.t.Fatalf("wait for the watchdog of %s: %v; its console's last lines:\n%s", m.config.Name, err, m.console.Last(lastLines))
	}
}

// Freeze has every processor stand still, with interrupts off, as a kernel does that has
// gone wrong altogether. Only a reset ends that. It needs [Config.Debugger].
func (m *Machine) Freeze(ctx context.Context) {
	m.t.Helper()
	if !m.config.Debugger {
		m.t.Fatalf("%s has no debugger that could freeze it", m.config.Name)
	}
	deadline, _ := ctx.Deadline() // Without one it waits for good.
	err := m.on.debugger.SetDeadline(deadline)
	if err == nil {
		err = gdb.New(m.on.debugger).Freeze()
	}
	if err != nil {
		m.t.Fatalf("%s: %v; its console's last lines:\n%s", m.config.Name, err, m.console.Last(lastLines))
	}
}

// Screenshot is what the monitor shows.
func (m *Machine) Screenshot(ctx context.Context) image.Image {
	m.t.Helper()
	name := filepath.Join(m.folder, "screenshot.png")
	m.execute(ctx, "screendump", map[string]any{"filename": name, "format": "png"}, nil)
	file, err := os.Open(name)
	if err != nil {
		m.t.Fatalf("take a screenshot: %v", err)
	}
	defer file.Close()
	picture, err := png.Decode(file)
	if err != nil {
		m.t.Fatalf("take a screenshot: %v", err)
	}
	return picture
}

// Address is where a TCP port in Card.Forward is reached from this host.
func (m *Machine) Address(ctx context.Context, port int) string {
	m.t.Helper()
	var table string
	m.execute(ctx, "human-monitor-command", userNetwork(), &table)
	address, err := forwarded(table, port)
	if err != nil {
		m.t.Fatalf("%s: %v", m.config.Name, err)
	}
	return address
}

// userNetwork are the arguments of QMP's human-monitor-command that ask for a table of
// what QEMU's own networks forward.
func userNetwork() map[string]any { return map[string]any{"command-line": "info usernet"} }

// forwarded finds in that table where a port of the machine's is reached.
func forwarded(table string, port int) (string, error) {
	pattern := regexp.MustCompile(fmt.Sprintf(`TCP\[HOST_FORWARD\]\s+\d+\s+127\.0\.0\.1\s+(\d+)\s+\S+\s+%d\s`, port))
	found := pattern.FindStringSubmatch(table)
	if found == nil {
		return "", fmt.Errorf("no port %d is forwarded; QEMU knows of:\n%s", port, table)
	}
	return "127.0.0.1:" + found[1], nil
}

// Variables are the UEFI variables that the machine has stored.
func (m *Machine) Variables() []variables.Variable {
	m.t.Helper()
	store, err := os.ReadFile(variablesFile(m.folder))
	if err != nil {
		m.t.Fatalf("read the variables of %s: %v", m.config.Name, err)
	}
	found, err := variables.Read(store)
	if err != nil {
		m.t.Fatalf("read the variables of %s: %v", m.config.Name, err)
	}
	return found
}

// execute has QEMU do something.
func (m *Machine) execute(ctx context.Context, command string, arguments, result any) {
	m.t.Helper()
	if m.on == nil {
		m.t.Fatalf("%s is off", m.config.Name)
	}
	if err := m.on.monitor.Execute(ctx, command, arguments, result); err != nil {
		m.t.Fatalf("%s: %v; its console's last lines:\n%s", m.config.Name, err, m.console.Last(lastLines))
	}
}
