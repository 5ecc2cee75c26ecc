package main

import (
	"encoding/xml"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"powercloud.unidatum.com/tests/machine"
)

// result is what came of a test in a machine.
type result struct {
	status int
	output string
	report string
}

// inGuest runs the test of the package selftest in a machine, where it does
// what it is asked for.
func inGuest(t *testing.T, asked string, environment ...string) result {
	t.Helper()
	if os.Getenv("KERNEL_TEST_KERNEL") == "" {
		t.Skip("only Bazel builds what the machine runs: bazel test //tests/machine/kernel/runner:all")
	}
	// A test of its own has a list of runfiles by its rule.
	folder := t.TempDir()
	list, report := filepath.Join(folder, "list"), filepath.Join(folder, "report.xml")
	if err := os.WriteFile(list, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(filepath.Join(os.Getenv("TEST_SRCDIR"), os.Getenv("TEST_WORKSPACE")), list)
	if err != nil {
		t.Fatal(err)
	}
	runner, err := runfile("RUNNER")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), runner)
	command.Env = append(os.Environ(), "KERNEL_TEST_FILES="+relative, "XML_OUTPUT_FILE="+report,
		"KERNEL_TEST_FORWARD=KERNEL_SELFTEST", "KERNEL_SELFTEST="+asked, "TESTBRIDGE_TEST_ONLY=TestAsked", "GO_TEST_WRAP=1", "GO_TEST_WRAP_TESTV=1")
	command.Env = append(command.Env, environment...)
	output, err := command.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	content, err := os.ReadFile(report)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return result{command.ProcessState.ExitCode(), string(output), string(content)}
}

// failures counts the failed test cases of a report.
func failures(t *testing.T, report string) int {
	t.Helper()
	var suites struct {
		Cases []struct {
			Failure *struct{} `xml:"failure"`
			Error   *struct{} `xml:"error"`
		} `xml:"testsuite>testcase"`
	}
	if err := xml.Unmarshal([]byte(report), &suites); err != nil {
		t.Fatalf("the report can't be read: %v: %q", err, report)
	}
	failed := 0
	for _, c := range suites.Cases {
		if c.Failure != nil || c.Error != nil {
			failed++
		}
	}
	return failed
}

func TestOutcomes(t *testing.T) {
	for _, c := range []struct {
		asked       string
		environment []string
		status      int // Or -1 for any but 0.
		output      string
		failures    int // Or -1 where there is no report.
	}{
		{"pass", nil, 0, "--- PASS: TestAsked", 0},
		{"fail", nil, 1, "it was asked to fail", 1},
		{"kill", nil, -1, "=== RUN   TestAsked", 1},
		{"panic", nil, 1, "sysrq triggered crash", -1},
		{"hang", []string{"TEST_TIMEOUT=20"}, 1, "the test did not end within 15s", -1},
	} {
		t.Run(c.asked, func(t *testing.T) {
			r := inGuest(t, c.asked, c.environment...)
			if wrong := r.status != c.status && (c.status >= 0 || r.status == 0); wrong || !strings.Contains(r.output, c.output) {
				t.Errorf("the status is %d, want %d; the output should have %q and is:\n%s", r.status, c.status, c.output, r.output)
			}
			if strings.Contains(r.output, "TestRoot") {
				t.Error("a test ran that the filter leaves out")
			}
			switch {
			case c.failures < 0 && r.report != "":
				t.Errorf("there is a report: %s", r.report)
			case c.failures >= 0:
				if got := failures(t, r.report); got != c.failures {
					t.Errorf("%d cases failed, want %d: %s", got, c.failures, r.report)
				}
			}
		})
	}
}

func TestParseDisks(t *testing.T) {
	disks, err := parseDisks("1024,64/4096")
	want := []machine.Disk{{Size: 1 << 30, SectorSize: 512}, {Size: 64 << 20, SectorSize: 4096}}
	if err != nil || !slices.Equal(disks, want) {
		t.Errorf("%+v, %v", disks, err)
	}
	if disks, err := parseDisks(""); err != nil || disks != nil {
		t.Errorf("without disks: %+v, %v", disks, err)
	}
	for _, bad := range []string{"a", "1/", "/512", "99999999999"} {
		if _, err := parseDisks(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

// TestVariables runs without what the rule sets.
func TestVariables(t *testing.T) {
	t.Setenv("KERNEL_TEST_KERNEL", "")
	t.Setenv("KERNEL_TEST_INIT", "")
	_, err := run(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "KERNEL_TEST_INIT is not set: this program runs as a test of the rule kernel_test") {
		t.Errorf("the error is %v", err)
	}
}
