package machine

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestBalloonStatistics(t *testing.T) {
	for text, want := range map[string]Memory{
		`{"stats": {"stat-total-memory": 1000, "stat-available-memory": 900, "stat-free-memory": 800}, "last-update": 1}`: {1000, 900},
		// What QEMU says where the driver is an old one, and where there is none.
		`{"stats": {"stat-total-memory": 1000, "stat-available-memory": 18446744073709551615}, "last-update": 1}`:                 {},
		`{"stats": {"stat-total-memory": 18446744073709551615, "stat-available-memory": 18446744073709551615}, "last-update": 0}`: {},
		`{"stats": {"stat-total-memory": 900, "stat-available-memory": 1000}, "last-update": 1}`:                                  {},
	} {
		var s balloonStatistics
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatal(err)
		}
		if m, err := s.memory(); m != want || (err != nil) != (want == Memory{}) {
			t.Errorf("%s is taken for %+v, %v", text, m, err)
		}
	}
}

// TestCountedByTCG has a machine whose instructions are counted never run by KVM,
// which QEMU would refuse.
func TestCountedByTCG(t *testing.T) {
	t.Setenv("MACHINE_ACCELERATOR", "kvm")
	config, err := Config{CountInstructions: true}.complete()
	if err != nil {
		t.Fatal(err)
	}
	if found, err := accelerator(t.Context(), config, ""); found != tcg || err != nil {
		t.Errorf("it runs by %q, %v", found, err)
	}
	l := &commandLine{config: config}
	l.base(tcg)
	if arguments := strings.Join(l.arguments, " "); !strings.Contains(arguments, "-icount shift=0") {
		t.Errorf("the command line is %q", arguments)
	}
	plain := &commandLine{config: Config{Architecture: AMD64}}
	plain.base(tcg)
	if slices.Contains(plain.arguments, "-icount") {
		t.Error("another machine's instructions are counted as well")
	}
}

func TestFiguresThatNobodyAskedFor(t *testing.T) {
	o := &Observed{config: Config{Name: "m"}}
	if _, err := o.Instructions(t.Context()); err == nil || !strings.Contains(err.Error(), "nobody counts") {
		t.Errorf("the error is %v", err)
	}
	if _, err := o.Memory(t.Context()); err == nil || !strings.Contains(err.Error(), "no memory balloon") {
		t.Errorf("the error is %v", err)
	}
}
