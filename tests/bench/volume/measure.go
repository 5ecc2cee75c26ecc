package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"powercloud.unidatum.com/tests/bench/volume/transfer"
	"powercloud.unidatum.com/tests/machine"
	"powercloud.unidatum.com/tests/machine/initramfs"
	"powercloud.unidatum.com/tests/machine/kernel"
	"powercloud.unidatum.com/tests/machine/kernel/host"
	"powercloud.unidatum.com/tools/lint"
)

// These are set by Bazel to where it has put what is run.
var (
	kernelFile   string
	initFile     string
	guestFile    string
	templateFile string
)

// files are the paths of what is run.
type files struct{ kernel, init, guest, template string }

func findFiles() (files, error) {
	f := files{kernelFile, initFile, guestFile, templateFile}
	for _, path := range []*string{&f.kernel, &f.init, &f.guest, &f.template} {
		if *path == "" {
			return f, errors.New("only Bazel builds what this runs: bazel run //tests/bench:volume")
		}
		found, err := lint.Runfile(*path)
		if err != nil {
			return f, fmt.Errorf("find what is to be run: %w", err)
		}
		*path = found
	}
	return f, nil
}

// results are the samples of each place, by its name.
type results map[string][]transfer.Sample

const (
	// memory is the machine's, in MiB: the least that a node is supported with.
	memory = 1024
	// diskSize is the size of each disk, in bytes: that of a state partition on a disk of
	// 1 GiB.
	diskSize = 768 << 20

	// Where files are in the machine.
	guestPath    = "/guest"
	templatePath = "/state.ext4.zst"
)

// measure measures on a machine whose disks have a speed.
func measure(ctx context.Context, opts options, f files, speed int64, progress io.Writer) (results, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, opts.patience, fmt.Errorf("%v were not enough", opts.patience))
	defer cancel()
	disk := machine.Disk{Size: diskSize, BytesPerSecond: speed << 20}
	var output bytes.Buffer
	status, err := host.Run(ctx, host.Job{
		Machine: machine.Config{Name: "volume", Architecture: machine.AMD64, MemoryMiB: memory, CPUs: opts.cpus,
			Disks: []machine.Disk{disk, disk, disk}},
		Kernel: f.kernel,
		Init:   f.init,
		Task: kernel.Task{
			Program:   guestPath,
			Arguments: []string{fmt.Sprintf("-rounds=%d", opts.rounds), fmt.Sprintf("-size=%d", opts.size), "-template=" + templatePath},
			Folder:    "/",
		},
		Files: func(archive *initramfs.Archive) error {
			return errors.Join(archive.File(guestPath, f.guest), archive.File(templatePath, f.template))
		},
		Output: io.MultiWriter(&output, progress),
	})
	if err != nil {
		return nil, err
	}
	if status != 0 {
		return nil, fmt.Errorf("what measures in the machine ended with status %d: %s", status, output.String())
	}
	return collect(&output, opts)
}

// collect reads what the machine has printed, and looks whether it is all there.
func collect(output io.Reader, opts options) (results, error) {
	all := results{}
	decoder := json.NewDecoder(output)
	for {
		var sample transfer.Sample
		err := decoder.Decode(&sample)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read what was measured: %w", err)
		}
		if sample.Bytes != opts.size || sample.Written <= 0 || sample.Read <= 0 {
			return nil, fmt.Errorf("of the %s, this was measured: %+v", sample.Place, sample)
		}
		all[sample.Place] = append(all[sample.Place], sample)
	}
	for _, name := range places() {
		if got := len(all[name]); got != opts.rounds {
			return nil, fmt.Errorf("the %s was measured %d times and not %d", name, got, opts.rounds)
		}
	}
	return all, nil
}

// places are the names of the places, in the order of the report.
func places() []string {
	return []string{transfer.Bare, transfer.Volume, transfer.Plain, transfer.State}
}

// below is the place that one without encryption is compared with.
func below(place string) string {
	switch place {
	case transfer.Volume:
		return transfer.Bare
	case transfer.State:
		return transfer.Plain
	}
	return ""
}

// durations returns one of two times of each sample.
func durations(samples []transfer.Sample, of func(transfer.Sample) time.Duration) []time.Duration {
	var list []time.Duration
	for _, s := range samples {
		list = append(list, of(s))
	}
	return list
}
