package recovery

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"powercloud.unidatum.com/go/node/boot"
	"powercloud.unidatum.com/go/sys/sysctl"
	"powercloud.unidatum.com/tests/machine"
)

// absent are the parameters that pcinit sets and that the node's kernel hasn't got, since
// it hasn't got what they would forbid. Only these may be missing: pcinit passes over
// every one that is, a misspelt one too.
var absent = []string{
	"kernel/sysrq",                // MAGIC_SYSRQ is off.
	"kernel/core_pattern",         // COREDUMP is off.
	"kernel/kexec_load_disabled",  // KEXEC and KEXEC_FILE are off.
	"kernel/modules_disabled",     // MODULES is off,
	"net/core/bpf_jit_harden",     // which the translator of BPF would need.
	"kernel/io_uring_disabled",    // IO_URING is off.
	"vm/unprivileged_userfaultfd", // USERFAULTFD is off.
	"dev/tty/legacy_tiocsti",      // Later kernels have it.
}

// absentOnARM64 are those that the kernel for arm64 alone hasn't got.
var absentOnARM64 = []string{
	"kernel/perf_event_paranoid", // PERF_EVENTS is off, which the kernel for amd64 can't do without.
}

// TestSetUp looks from inside at what pcinit has set up before it started pcd.
func TestSetUp(t *testing.T) {
	_, architecture := machine.Image(t)
	missing := absent
	if architecture == machine.ARM64 {
		missing = slices.Concat(absent, absentOnARM64)
	}
	m := start(machine.Patient(t), t, sabotaged(t))
	t.Run("parameters", func(t *testing.T) { expectParameters(t, m, boot.Settings(string(architecture)), missing) })
	t.Run("mounts", func(t *testing.T) { expectMounts(t, m) })
	t.Run("control groups", func(t *testing.T) { expectGroups(t, m) })
	t.Run("host name", func(t *testing.T) {
		if name := content(t, m, "/proc/sys/kernel/hostname"); name != "powercloud" {
			t.Errorf("the machine is called %q", name)
		}
	})
}

// expectParameters expects that the kernel's parameters are what they were set to, but
// for those that are missing.
func expectParameters(t *testing.T, m *machine.Machine, settings []sysctl.Setting, missing []string) {
	if len(settings) == 0 {
		t.Fatal("pcinit sets nothing")
	}
	for _, s := range settings {
		answer, found := ask(t, m, "read %s/%s", sysctl.Root, s.Name)
		switch {
		case found:
			if got := unquote(t, answer); got != s.Value {
				t.Errorf("%s is %q, want %q", s.Name, got, s.Value)
			}
		case !slices.Contains(missing, s.Name) || !strings.Contains(answer, unix.ENOENT.Error()):
			t.Errorf("%s can't be read: %s", s.Name, answer)
		}
	}
}

// flagNames are the options that /proc/self/mounts has for flags of mount(2).
var flagNames = map[uintptr]string{unix.MS_NOSUID: "nosuid", unix.MS_NODEV: "nodev", unix.MS_NOEXEC: "noexec"}

// mounted is a line of /proc/self/mounts.
type mounted struct {
	kind    string
	options []string
}

// expectMounts expects what a node mounts, and that nothing but the root file system has
// programs, and nothing but /dev has devices.
func expectMounts(t *testing.T, m *machine.Machine) {
	table := map[string]mounted{}
	for line := range strings.Lines(content(t, m, "/proc/self/mounts")) {
		fields := strings.Fields(line)
		if len(fields) < 4 {
			t.Fatalf("/proc/self/mounts has the line %q", line)
		}
		table[fields[1]] = mounted{fields[2], strings.Split(fields[3], ",")}
	}
	for _, want := range boot.Node().Mounts {
		got, found := table[want.Target]
		if !found || got.kind != want.Type {
			t.Errorf("at %s there is %q, want %s", want.Target, got.kind, want.Type)
			continue
		}
		for flag, name := range flagNames {
			if has := slices.Contains(got.options, name); has != (want.Flags&flag != 0) {
				t.Errorf("%s is mounted with %s: %v", want.Target, name, has)
			}
		}
	}
	for target, got := range table {
		if target == "/" {
			continue
		}
		for _, name := range flagNames {
			devices := target == "/dev" || strings.HasPrefix(target, "/dev/")
			if !slices.Contains(got.options, name) && (name != "nodev" || !devices) {
				t.Errorf("%s at %s is mounted without %s", got.kind, target, name)
			}
		}
	}
}

// expectGroups expects that pcd is alone in a control group of its own, and that groups
// can limit what is in them.
func expectGroups(t *testing.T, m *machine.Machine) {
	pcd := tell(t, m, "find pcd")
	// The only line of a system that has version 2 alone.
	if group := content(t, m, "/proc/"+pcd+"/cgroup"); group != "0::/pcd-1" {
		t.Errorf("pcd is in the control groups %q", group)
	}
	if processes := content(t, m, "/sys/fs/cgroup/pcd-1/cgroup.procs"); processes != pcd {
		t.Errorf("pcd's control group has the processes %q, want %s", processes, pcd)
	}
	if group := content(t, m, "/proc/1/cgroup"); group != "0::/" {
		t.Errorf("PID 1 is in the control groups %q", group)
	}
	controllers := strings.Fields(content(t, m, "/sys/fs/cgroup/cgroup.subtree_control"))
	for _, want := range []string{"cpu", "memory", "pids", "io", "cpuset"} {
		if !slices.Contains(controllers, want) {
			t.Errorf("control groups have %q, without %s", controllers, want)
		}
	}
}
