package machine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"powercloud.unidatum.com/tests/machine/variables"
)

func TestConfigComplete(t *testing.T) {
	given := Config{Disks: []Disk{{Size: 1}}, Cards: []Card{{}, {}}}
	c, err := given.complete()
	if err != nil {
		t.Fatal(err)
	}
	if c.Name != "machine" || c.Architecture != AMD64 || c.MemoryMiB != 512 || c.CPUs != 1 ||
		c.Disks[0].Controller != VirtioBlock || c.Disks[0].Serial != "disk0" || c.Cards[1].MAC != "52:54:00:00:00:01" {
		t.Errorf("it became %+v", c)
	}
	if given.Disks[0].Serial != "" {
		t.Error("what was given was changed")
	}
}

func TestConfigRefuses(t *testing.T) {
	for want, c := range map[string]Config{
		"neither an image nor a size":      {Disks: []Disk{{}}},
		"an image or a size as well":       {Disks: []Disk{{Folder: "f", Size: 1}}},
		"forwards ports":                   {Cards: []Card{{Network: &Network{}, Forward: []int{1}}}},
		"is isolated":                      {Cards: []Card{{Network: &Network{}, Isolated: true}}},
		`of the architecture "mips"`:       {Architecture: "mips"},
		"watchdog and the debugger":        {Architecture: ARM64, NoReboot: true},
		"the debugger are those of amd64":  {Architecture: ARM64, Debugger: true},
		"without UEFI it needs a kernel":   {Firmware: Direct},
		"nothing that keeps variables":     {Firmware: Direct, Kernel: &Kernel{}, Variables: []variables.Variable{{}}},
		`no controller "floppy" of disks`:  {Disks: []Disk{{Size: 1, Controller: "floppy"}}},
		`no network card of the kind "ne"`: {Cards: []Card{{Model: "ne"}}},
	} {
		if _, err := c.complete(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one with %q", err, want)
		}
	}
}

// TestCommas has paths with commas, which mean something to QEMU.
func TestCommas(t *testing.T) {
	config, err := Config{Disks: []Disk{{Size: 1}}}.complete()
	if err != nil {
		t.Fatal(err)
	}
	l := &commandLine{config: config, folder: "/a,b"}
	l.disk(0, config.Disks[0])
	if !slices.ContainsFunc(l.arguments, func(a string) bool { return strings.Contains(a, "filename=/a,,b/disk0.qcow2") }) {
		t.Errorf("the command line is %q", l.arguments)
	}
}

func TestAcceleratorChosen(t *testing.T) {
	config := Config{Architecture: AMD64}
	if !config.Architecture.native() {
		t.Skip("it is chosen for the host's own architecture only")
	}
	t.Setenv("MACHINE_ACCELERATOR", "kvm")
	if got, err := accelerator(t.Context(), config, ""); got != kvm || err != nil {
		t.Errorf("it is %s, %v", got, err)
	}
	if got, err := accelerator(t.Context(), Config{Architecture: ARM64}, ""); got != tcg || err != nil {
		t.Errorf("for another architecture it is %s, %v", got, err)
	}
	t.Setenv("MACHINE_ACCELERATOR", "xen")
	if _, err := accelerator(t.Context(), config, ""); err == nil || !strings.Contains(err.Error(), "it must be kvm or tcg") {
		t.Errorf("the error is %v", err)
	}
}

// TestAcceleratorIsFoundOut finds it out twice; the second time nothing runs.
func TestAcceleratorIsFoundOut(t *testing.T) {
	found := needTools(t)
	cache := t.TempDir()
	folders := []string{"/nonexistent", cache}
	first, err := findOut(t.Context(), found, folders)
	if err != nil {
		t.Fatal(err)
	}
	key, err := probeKey(found)
	if err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(filepath.Join(cache, key)); err != nil || string(content) != first {
		t.Errorf("kept is %q, %v, found was %s", content, err, first)
	}
	other := map[string]string{kvm: tcg, tcg: kvm}[first]
	if err := os.WriteFile(filepath.Join(cache, key), []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	if second, err := findOut(t.Context(), found, folders); second != other || err != nil {
		t.Errorf("the second time it is %s, %v: what was kept was not used", second, err)
	}
}
