package main

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/tests/bench/figures"
	"powercloud.unidatum.com/tests/bench/volume/transfer"
	"powercloud.unidatum.com/tests/machine"
)

func TestParse(t *testing.T) {
	opts, err := parse([]string{"--rounds", "2", "--size", "8", "--speeds", "0,10"}, io.Discard)
	if err != nil || opts.rounds != 2 || opts.size != 8<<20 || !slices.Equal(opts.speeds, []int64{0, 10}) {
		t.Errorf("%+v, %v", opts, err)
	}
	for _, args := range [][]string{
		{"--rounds", "0"}, {"--size", "0"}, {"--size", "41"}, {"--speeds", "fast"}, {"--speeds", "-1"}, {"--speeds", ""},
		{"--cpus", "0"}, {"--patience", "0s"}, {"argument"},
	} {
		if _, err := parse(args, io.Discard); err == nil {
			t.Errorf("%q was accepted", args)
		}
	}
}

// sample is a report whose volume on a slow disk is as it should be, and whose volume on
// a fast one takes too long.
func sample() report {
	of := func(name string, read time.Duration, written ...time.Duration) []transfer.Sample {
		var list []transfer.Sample
		for _, took := range written {
			list = append(list, transfer.Sample{Place: name, Bytes: 32 << 20, Written: took * time.Second, Read: read * time.Second})
		}
		return list
	}
	return report{
		opts:        options{rounds: 3, size: 32 << 20, speeds: []int64{0, 8}, cpus: 2},
		accelerator: "tcg", loadBefore: "0.10 0.20 0.30", loadAfter: "1.10 0.80 0.40",
		results: map[int64]results{
			0: {transfer.Bare: of(transfer.Bare, 2, 1, 1, 1), transfer.Volume: of(transfer.Volume, 2, 4, 4, 5),
				transfer.Plain: of(transfer.Plain, 2, 2, 1, 2), transfer.State: of(transfer.State, 2, 4, 4, 4)},
			8: {transfer.Bare: of(transfer.Bare, 2, 4, 4, 4), transfer.Volume: of(transfer.Volume, 2, 8, 9, 8),
				transfer.Plain: of(transfer.Plain, 2, 4, 4, 4), transfer.State: of(transfer.State, 6, 10, 10, 10)},
		},
	}
}

func TestTargets(t *testing.T) {
	const wanted = "about double (< 2.5 times)"
	want := []figures.Target{
		{What: "writes to volume, beside bare disk, on disks as fast as the host can", Wanted: wanted, Measured: "4.00 times"},
		{What: "reads from volume, beside bare disk, on disks as fast as the host can", Wanted: wanted, Measured: "1.00 times", Met: true},
		{What: "writes to ext4 on the volume, beside ext4 on the disk, on disks as fast as the host can", Wanted: wanted, Measured: "2.00 times", Met: true},
		{What: "reads from ext4 on the volume, beside ext4 on the disk, on disks as fast as the host can", Wanted: wanted, Measured: "1.00 times", Met: true},
		{What: "writes to volume, beside bare disk, on disks of 8 MiB/s", Wanted: wanted, Measured: "2.00 times", Met: true},
		{What: "reads from volume, beside bare disk, on disks of 8 MiB/s", Wanted: wanted, Measured: "1.00 times", Met: true},
		{What: "writes to ext4 on the volume, beside ext4 on the disk, on disks of 8 MiB/s", Wanted: wanted, Measured: "2.50 times"},
		{What: "reads from ext4 on the volume, beside ext4 on the disk, on disks of 8 MiB/s", Wanted: wanted, Measured: "3.00 times"},
	}
	if got := sample().targets(); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

func TestText(t *testing.T) {
	var out bytes.Buffer
	if err := sample().writeText(&out); err != nil {
		t.Fatal(err)
	}
	lines := map[string]bool{}
	for line := range strings.Lines(out.String()) {
		lines[strings.Join(strings.Fields(line), " ")] = true
	}
	for _, want := range []string{
		"- bare disk 32.0 16.0 - -",
		"- volume 8.0 16.0 4.00 1.00",
		"8 ext4 on the volume 3.2 5.3 2.50 3.00",
		"writes to volume, beside bare disk, on disks of 8 MiB/s about double (< 2.5 times) 2.00 times met",
	} {
		if !lines[want] {
			t.Errorf("there is no line %q in:\n%s", want, &out)
		}
	}
	if !strings.Contains(out.String(), "load averages of the host 0.10 0.20 0.30 before and 1.10 0.80 0.40 after") {
		t.Errorf("it doesn't say how busy the host was:\n%s", &out)
	}
}

func TestCollect(t *testing.T) {
	var lines []string
	for _, name := range places() {
		line, err := json.Marshal(transfer.Sample{Place: name, Bytes: 1 << 20, Written: 2, Read: 1})
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(line))
	}
	opts := options{rounds: 1, size: 1 << 20}
	if all, err := collect(strings.NewReader(strings.Join(lines, "\n")), opts); err != nil || len(all) != 4 || all[transfer.State][0].Written != 2 {
		t.Errorf("%+v, %v", all, err)
	}
	for _, bad := range []string{"", strings.Join(lines[1:], "\n"), strings.Join(append(lines, lines[0]), "\n"), lines[0] + "\nguest: no disk", strings.ReplaceAll(strings.Join(lines, "\n"), `"read":1`, `"read":0`)} {
		if all, err := collect(strings.NewReader(bad), opts); err == nil {
			t.Errorf("of %q, this was read: %+v", bad, all)
		}
	}
}

// TestRun measures a little in a machine. How fast that is doesn't matter.
func TestRun(t *testing.T) {
	if kernelFile == "" {
		if _, err := findFiles(); err == nil || !strings.Contains(err.Error(), "bazel run //tests/bench:volume") {
			t.Errorf("%v", err)
		}
		t.Skip("only Bazel builds what the machine runs: bazel test //tests/bench/volume:all")
	}
	var out, progress bytes.Buffer
	if err := run(machine.Patient(t), []string{"--rounds", "1", "--size", "8", "--speeds", "50", "--json"}, &out, &progress); err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	var got struct {
		Results []row            `json:"results"`
		Targets []figures.Target `json:"targets"`
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || len(got.Results) != len(places()) || len(got.Targets) != 4 {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, one := range got.Results {
		if one.Written <= 0 || one.Read <= 0 || len(one.WrittenEach) != 1 || (one.WriteFactor > 0) != (below(one.Place) != "") {
			t.Errorf("%+v", one)
		}
	}
}
