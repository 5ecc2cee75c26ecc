package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pcctlmain "powercloud.unidatum.com/go/admin/pcctl"
)

// TestMain lets this program be run as pcctl, and as the competitor that the
// benchmark itself is.
func TestMain(m *testing.M) {
	switch {
	case filepath.Base(os.Args[0]) == "pcctl":
		os.Exit(pcctlmain.Main())
	case len(os.Args) > 1 && os.Args[1] == selfCommand:
		if err := runSelf(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestByteSize(t *testing.T) {
	for text, want := range map[string]string{"1GiB": "1 GiB", "10KiB": "10 KiB", "1024MiB": "1 GiB", "100": "100 bytes"} {
		var s byteSize
		if err := s.Set(text); err != nil || s.String() != want {
			t.Errorf("%s is read as %v, %v, want %s", text, s, err, want)
		}
	}
	for _, text := range []string{"", "0", "-1", "1GB", "GiB"} {
		if err := new(byteSize).Set(text); err == nil {
			t.Errorf("%q was taken for a size", text)
		}
	}
}

// The ceiling must do the work that it is compared for.
func TestCeilingGivesBackWhatItTook(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"file", "tree"} {
		source := filepath.Join(dir, name)
		if err := makeSource(options{size: 2*pieceSize + 100, files: 250, fileSize: 700}, workloadNamed(name), source); err != nil {
			t.Fatal(err)
		}
		repos := []string{filepath.Join(dir, name+"-a"), filepath.Join(dir, name+"-b")}
		if err := runSelf(append([]string{"put", source}, repos...)); err != nil {
			t.Fatal(err)
		}
		if err := runSelf(append([]string{"verify"}, repos...)); err != nil {
			t.Fatal(err)
		}
		for _, repo := range repos {
			out := filepath.Join(repo, "out")
			if err := runSelf([]string{"get", out, source, repo}); err != nil {
				t.Fatal(err)
			}
			if err := same(source, out); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestSameFindsDifferences(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	data := bytes.Repeat([]byte("0123456789"), 100_000)
	for _, other := range [][]byte{data[1:], data[:len(data)-1], append(bytes.Clone(data[:len(data)-1]), 'x')} {
		if err := os.WriteFile(a, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(b, other, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := same(a, b); err == nil {
			t.Error("different files are taken for the same")
		}
	}
	if err := same(a, a); err != nil {
		t.Error(err)
	}
}

func TestMeasureCopies(t *testing.T) {
	opts := options{rounds: 2, size: 100_000, files: 10, fileSize: 100, locations: []int{1, 3},
		workloads: []string{"file", "tree"}, fileDirs: []string{t.TempDir()}, treeDir: t.TempDir(), tools: []string{nameCopy}}
	tools, err := prepareTools(context.Background(), opts, t.Logf)
	if err != nil {
		t.Skip(err)
	}
	results, err := measureAll(context.Background(), opts, tools, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	var text, encoded bytes.Buffer
	if err := newReport(opts, results).writeText(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"one file of 100000 bytes into 3 directories", "10 files of 100 bytes into one directory", "cp"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, &text)
		}
	}
	if err := newReport(opts, results).writeJSON(&encoded); err != nil || !json.Valid(encoded.Bytes()) {
		t.Errorf("%v\n%s", err, &encoded)
	}
}

// The workloads beyond files and trees in directories must run, and pcctl give
// back what it was given.
func TestMeasurePCCtl(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "pcctl")
	if err := os.Symlink(self, program); err != nil {
		t.Skip(err)
	}
	// The recovery key, as Argon2id for every command takes long.
	args := []string{"--tools", nameRecovery + "," + nameCopy, "--workloads", strings.Join(workloadNames()[2:], ","), "--pcctl", program,
		"--rounds", "1", "--size", "5MiB", "--files", "20", "--objects", "120", "--large-objects", "150",
		"--locations", "2", "--latency", "1ms", "--file-dirs", t.TempDir(), "--tree-dir", t.TempDir(), "--workspace", t.TempDir()}
	opts, err := parse(args, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	tools, err := prepareTools(context.Background(), opts, t.Logf)
	if err != nil {
		t.Skip(err)
	}
	results, err := measureAll(context.Background(), opts, tools, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := newReport(opts, results).writeText(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"20 files of 10 KiB into 3 buckets with 1ms of added latency", "an erasure-coded set ec:4 of 6 directories",
		"120 objects in 2 directories", "150 objects in one directory", "peak memory of ls cold"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, &text)
		}
	}
	for k, rounds := range results {
		if workloadNamed(k.workload).buckets != (rounds[0].requests > 0) {
			t.Errorf("%v took %d requests", k, rounds[0].requests)
		}
	}
}

func TestTargets(t *testing.T) {
	results := results{}
	for tool, u := range map[string]usage{
		namePCCtl:   {wall: time.Second, peak: 300 << 20},
		nameKopia:   {wall: 1800 * time.Millisecond},
		nameRestic:  {wall: 2 * time.Second},
		nameCeiling: {wall: 900 * time.Millisecond},
		nameArgon:   {peak: 266 << 20},
	} {
		results[key{"file", "/tmp", 1, tool, "put"}] = []usage{u, u, {wall: time.Hour, peak: 1 << 40}}
	}
	var got []string
	for _, target := range newReport(options{}, results).targets() {
		verdict := " missed"
		if target.Met {
			verdict = " met"
		}
		got = append(got, target.Measured+verdict)
	}
	want := "0.90 met, 1.80 met, 2.00 missed, 300 MiB met"
	if strings.Join(got, ", ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, ", "), want)
	}
}
