package boot

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"powercloud.unidatum.com/go/node/backoff"
	"powercloud.unidatum.com/go/node/notify"
	"powercloud.unidatum.com/go/sys/mounts"
	"powercloud.unidatum.com/go/sys/power"
	"powercloud.unidatum.com/go/sys/pstore"
	"powercloud.unidatum.com/go/sys/sysctl"
)

// These tests run PID 1 as the first process of namespaces of its own, with a
// stand-in for pcd: both are this very program, told by variables what to be.
const (
	roleVariable   = "BOOT_TEST_ROLE"
	sceneVariable  = "BOOT_TEST_SCENE"
	folderVariable = "BOOT_TEST_FOLDER"
)

func TestMain(m *testing.M) {
	folder, scene := os.Getenv(folderVariable), os.Getenv(sceneVariable)
	switch os.Getenv(roleVariable) {
	case "":
		os.Exit(m.Run())
	case "pcinit":
		if os.Getpid() != 1 {
			os.Exit(101)
		}
		fmt.Println("Run returned", Run(testMachine(folder, scene)))
		os.Exit(0)
	case "pcd":
		os.Exit(standIn(folder, scene))
	case "child":
		// It outlives its parent, and holds its output.
		signal.Ignore(unix.SIGTERM)
		forever()
	}
}

// testMachine has everything in one folder, and touches nothing outside of its
// namespaces.
func testMachine(folder, scene string) Machine {
	m := Node()
	m.Program, m.Arguments = "/proc/self/exe", []string{"pcd"}
	m.Environment = []string{roleVariable + "=pcd", sceneVariable + "=" + scene, folderVariable + "=" + folder}
	m.HostName = "under-test"
	m.Mounts = []mounts.Mount{
		{Target: folder + "/proc", Type: "proc", Mode: 0o555},
		{Target: folder + "/missing", Type: "nosuchfs", Mode: 0o555, Optional: true},
	}
	m.SysctlRoot, m.Settings = folder, []sysctl.Setting{{Name: "setting", Value: "1"}, {Name: "absent", Value: "1"}}
	m.CgroupRoot = folder + "/cgroup"
	m.ConsoleTable, m.Devices, m.KernelLog = folder+"/consoles", folder, folder+"/kmsg"
	m.CrashOutput = []string{folder + "/none", folder + "/crash"}
	m.WatchdogClass, m.Pstore = folder+"/watchdogs", folder+"/pstore"
	m.RandomDevice, m.PowerButtons = folder+"/random", folder
	m.Variables = folder + "/variables"
	m.RunDir, m.Proc = folder+"/run", folder+"/proc"
	m.Timing = Timing{
		Watchdog: time.Minute, Frozen: 10 * time.Second, Stop: 10 * time.Second, Dump: 10 * time.Second,
		Processes: 10 * time.Second, Entropy: time.Minute, Good: 0,
		Restart: backoff.Policy{Least: time.Millisecond},
		Crashes: func(panics int) time.Duration { return time.Duration(panics) },
	}
	if scene == "crowded" {
		m.Environment = append(m.Environment, "GOTRACEBACK=all")
	}
	if scene == "freezes" {
		m.Timing.Frozen = 300 * time.Millisecond
	}
	if scene == "deaf" {
		m.Timing.Stop, m.Timing.Dump = 100*time.Millisecond, 100*time.Millisecond
	}
	if scene == "orphans" {
		m.Timing.Dump, m.Timing.Processes = 200*time.Millisecond, 200*time.Millisecond
	}
	if scene == "loops" {
		m.Timing.Crashes = func(int) time.Duration {
			// Without it the test would wait too.
			_ = syscall.Kill(1, unix.SIGTERM)
			return time.Hour
		}
	}
	m.Unmount = func() error {
		if left, err := power.Processes(m.Proc); err != nil || len(left) > 0 {
			return fmt.Errorf("the processes %v hold what is to be unmounted (%v)", left, err)
		}
		return nil
	}
	m.End = func(a power.Action) error {
		switch scene {
		case "panics":
			panic("a mistake in PID 1")
		case "overflows":
			debug.SetMaxStack(1 << 16)
			return errors.New(strconv.Itoa(overflow(1)))
		}
		return os.WriteFile(folder+"/ended", []byte(a.String()), 0o600)
	}
	return m
}

// overflow is an error of the runtime's that no recover catches.
func overflow(n int) int {
	if n == 0 {
		return 0
	}
	return overflow(n+1) + 1
}

// forever does nothing, in a way that the Go runtime doesn't take for a deadlock.
func forever() {
	for {
		_ = unix.Pause()
	}
}

// standIn plays pcd. It counts its runs.
func standIn(folder, scene string) int {
	counter := folder + "/runs"
	text, _ := os.ReadFile(counter)
	runs, _ := strconv.Atoi(string(text))
	runs++
	if err := os.WriteFile(counter, []byte(strconv.Itoa(runs)), 0o600); err != nil {
		return 110
	}
	conn, err := notify.Inherited()
	if err != nil || conn == nil {
		return 111
	}
	say := func(k notify.Kind, text string) {
		if err := conn.Send(notify.Message{Kind: k, Text: text}); err != nil {
			os.Exit(112)
		}
	}
	fmt.Printf("run %d of %s\x1b[2J\n", runs, scene)
	if scene == "crashes" && runs < 4 {
		panic("a mistake in pcd")
	}
	if scene == "crowded" && runs == 1 {
		for range tailLines / 4 {
			go func() { select {} }()
		}
		panic("a mistake in a busy pcd")
	}
	say(notify.Ready, "test")
	if scene == "freezes" && runs == 1 {
		forever()
	}
	if scene == "orphans" {
		attributes := &syscall.ProcAttr{Env: []string{roleVariable + "=child"}, Files: []uintptr{0, 1, 2}}
		if _, err := syscall.ForkExec("/proc/self/exe", []string{"child"}, attributes); err != nil {
			return 113
		}
	}
	if scene == "good" {
		// Wait until the boot counts as good.
		for {
			say(notify.Alive, "")
			if left, _ := filepath.Glob(folder + "/pstore/*"); len(left) == 0 {
				break
			}
		}
	}
	stopped := make(chan os.Signal, 1)
	signal.Notify(stopped, unix.SIGTERM)
	if scene == "deaf" {
		signal.Ignore(unix.SIGTERM, unix.SIGQUIT)
	}
	if scene == "off" {
		say(notify.PowerOff, "the test wants it")
	} else if scene != "signal" {
		say(notify.Reboot, "the test wants it")
	} else if err := syscall.Kill(1, unix.SIGINT); err != nil {
		return 114
	}
	if scene == "deaf" {
		forever()
	}
	if m, err := conn.Receive(); err != nil || m.Kind != notify.Stop {
		return 115
	}
	<-stopped
	fmt.Println("pcd stops")
	return 0
}

// outcome is what a run of PID 1 has left.
type outcome struct {
	console, kernelLog, ended, folder string

	output string
	err    error
}

// run runs PID 1 in a scene that it survives.
func run(t *testing.T, scene string, prepare func(folder string)) outcome {
	t.Helper()
	o := runAny(t, scene, prepare)
	if o.err != nil || o.output != "Run returned <nil>\n" {
		t.Fatalf("PID 1: %v\n%s\nconsole:\n%s", o.err, o.output, o.console)
	}
	return o
}

// runAny runs PID 1 in a scene.
func runAny(t *testing.T, scene string, prepare func(folder string)) outcome {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{
		"consoles": "ttyS0 -W- (E)\ntty0 -WU\n", "ttyS0": "", "tty0": "", "kmsg": "", "crash": "", "random": "", "setting": "",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if prepare != nil {
		prepare(folder)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{roleVariable + "=pcinit", sceneVariable + "=" + scene, folderVariable + "=" + folder}
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:   unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWNET | unix.CLONE_NEWUSER,
		Unshareflags: unix.CLONE_NEWNS,
		UidMappings:  []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings:  []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	err := cmd.Run()
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) {
		t.Skip("namespaces are not allowed here:", err)
	}
	read := func(name string) string {
		text, _ := os.ReadFile(filepath.Join(folder, name))
		return string(text)
	}
	o := outcome{console: read("ttyS0"), kernelLog: read("kmsg"), ended: read("ended"), folder: folder, output: output.String(), err: err}
	if o.console != read("tty0") {
		t.Errorf("the consoles differ:\n%s\n%s", o.console, read("tty0"))
	}
	return o
}

func (o outcome) expect(t *testing.T, ended string, lines ...string) {
	t.Helper()
	if o.ended != ended {
		t.Errorf("the machine ended with %q, want %q", o.ended, ended)
	}
	for _, line := range lines {
		if !strings.Contains(o.console, line) {
			t.Errorf("the console lacks %q:\n%s", line, o.console)
		}
	}
	if strings.ContainsRune(o.console, '\x1b') {
		t.Error("an escape sequence of pcd's reached the console")
	}
}

// variables makes the folder of the firmware's variables.
func variables(t *testing.T) func(folder string) {
	return func(folder string) {
		if err := os.Mkdir(folder+"/variables", 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// expectSaved expects one variable, with words that begin so.
func (o outcome) expectSaved(t *testing.T, words string) {
	t.Helper()
	variables, _ := filepath.Glob(o.folder + "/variables/*")
	if len(variables) != 1 {
		t.Fatalf("the firmware got the variables %v", variables)
	}
	saved, err := os.ReadFile(variables[0])
	if err != nil || !strings.HasPrefix(string(saved), "\x07\x00\x00\x00Program ended#1 Part1\n"+words) {
		t.Errorf("the firmware got %q, %v", saved, err)
	}
}

func TestReboot(t *testing.T) {
	o := run(t, "reboots", nil)
	o.expect(t, "reboot", "\nrun 1 of reboots?[2J\n", "\npcd stops\n", `reason="pcd asks for it: the test wants it"`, "pcd is ready")
	for _, line := range []string{"<31>pcd: run 1 of reboots?[2J\n", "<31>pcinit: level=INFO msg=\"pcinit begins\"\n"} {
		if !strings.Contains(o.kernelLog, line) {
			t.Errorf("the kernel's log lacks %q:\n%s", line, o.kernelLog)
		}
	}
	if b, err := os.ReadFile(o.folder + "/setting"); string(b) != "1\n" || err != nil {
		t.Errorf("the kernel's parameter is %q, %v", b, err)
	}
	if b, err := os.ReadFile(o.folder + "/random"); len(b) != 32 || err != nil {
		t.Errorf("the random number generator got %x, %v", b, err)
	}
}

func TestPowerOff(t *testing.T) { run(t, "off", nil).expect(t, "power-off") }

func TestCtrlAltDel(t *testing.T) {
	run(t, "signal", nil).expect(t, "reboot", "Ctrl-Alt-Del was pressed")
}

func TestEndDuringTheWaitOfABootLoop(t *testing.T) {
	run(t, "loops", nil).expect(t, "reboot", "boot loop", "PID 1 was asked to end")
}

func TestCrashingDaemonIsStartedAgain(t *testing.T) {
	o := run(t, "crashes", variables(t))
	// The first of three crashes.
	o.expectSaved(t, "<31>pcd: pcd exited with status 2\n<31>pcd: panic: a mistake in pcd\n")
	o.expect(t, "reboot", "run 4 of crashes", "panic: a mistake in pcd", "pcd exited with status 2 and will be started again", "failures=3")
	words, err := os.ReadFile(o.folder + "/run/" + wordsFile)
	if err != nil || !strings.Contains(string(words), "run 3 of crashes?[2J\npanic: a mistake in pcd\n") {
		t.Errorf("last words: %q, %v", words, err)
	}
}

// TestCrashOfABusyDaemon has the stacks of many goroutines follow a panic: it is known all
// the same.
func TestCrashOfABusyDaemon(t *testing.T) {
	o := run(t, "crowded", variables(t))
	o.expectSaved(t, "<31>pcd: pcd exited with status 2\n<31>pcd: panic: a mistake in a busy pcd\n")
	words, err := os.ReadFile(o.folder + "/run/" + wordsFile)
	if err != nil || !strings.HasPrefix(string(words), "panic: a mistake in a busy pcd\n") || !strings.Contains(string(words), " lines are left out here)\n") {
		t.Errorf("last words: %q, %v", words, err)
	}
}

func TestFrozenDaemonIsKilled(t *testing.T) {
	// Its stacks are in the output.
	run(t, "freezes", nil).expect(t, "reboot", "pcd is frozen and will be killed", "SIGQUIT: quit", "goroutine 1 ", "run 2 of freezes")
}

func TestDaemonThatDoesNotStop(t *testing.T) {
	run(t, "deaf", nil).expect(t, "reboot", "pcd doesn't stop and will be killed")
}

func TestOrphanThatHoldsTheOutput(t *testing.T) {
	o := run(t, "orphans", nil)
	o.expect(t, "reboot", "still holds its output", "not every process ended by itself", "killed=1")
	if strings.Contains(o.console, "to be unmounted") {
		t.Errorf("it was unmounted before the orphan was gone:\n%s", o.console)
	}
}

func TestEarlierPanics(t *testing.T) {
	prepare := func(folder string) {
		if err := os.Mkdir(folder+"/pstore", 0o755); err != nil {
			t.Fatal(err)
		}
		for i := range 8 {
			name := fmt.Sprintf("%s/pstore/dmesg-efi_pstore-%d", folder, ((1_700_000_000+i)*100+1)*1000+1)
			if err := os.WriteFile(name, fmt.Appendf(nil, "Panic#1 Part1\n<0>[ 1.0] Kernel panic - not syncing: number %d\n", i), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	o := run(t, "good", prepare)
	o.expect(t, "reboot", "Kernel panic - not syncing: number 7", "boot loop", "panics=8")
	dumps, err := pstore.ReadKept(o.folder + "/run/" + pstore.KeptName)
	if err != nil || len(dumps) != 8 || !strings.HasSuffix(dumps[7].Text, "number 7\n") {
		t.Errorf("kept: %+v, %v", dumps, err)
	}
}

func TestPanicOfPID1(t *testing.T) {
	o := runAny(t, "panics", nil)
	var exit *exec.ExitError
	if !errors.As(o.err, &exit) || exit.ExitCode() != 2 {
		t.Errorf("PID 1 ended with %v: %s", o.err, o.output)
	}
	// Each line is a record of its own, of the highest priority.
	for _, line := range []string{"<24>pcinit: pcinit panics: a mistake in PID 1\n", "boot_test.go"} {
		if !strings.Contains(o.kernelLog, line) {
			t.Errorf("the kernel's log lacks %q:\n%s", line, o.kernelLog)
		}
	}
}

func TestFatalErrorOfPID1(t *testing.T) {
	o := runAny(t, "overflows", nil)
	if o.err == nil {
		t.Errorf("PID 1 went on: %s", o.output)
	}
	if text, err := os.ReadFile(o.folder + "/crash"); err != nil || !strings.Contains(string(text), "fatal error: stack overflow\n") {
		t.Errorf("the device for crashes has %.500q, %v", text, err)
	}
}
