// Command guest is the machine's side of the benchmark of the state volume: it puts a
// file system on one disk and a state volume on another, measures both beside a third
// disk that is bare, and prints what it has measured, each on a line of JSON.
//
// It runs as the first program of a node's kernel; see package kernel of
// tests/machine.
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"powercloud.unidatum.com/go/cluster/volumeid"
	"powercloud.unidatum.com/go/node/volume"
	"powercloud.unidatum.com/go/node/volume/header"
	"powercloud.unidatum.com/go/pki"
	"powercloud.unidatum.com/tests/bench/figures"
	"powercloud.unidatum.com/tests/bench/volume/transfer"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "guest:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("guest", flag.ContinueOnError)
	rounds := flags.Int("rounds", 1, "how often everything is measured")
	size := flags.Int64("size", 1<<20, "how many bytes are written and read each time")
	template := flags.String("template", "", "the file system that volumes begin with, compressed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	places, done, err := prepare(ctx, *template)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	encoder := json.NewEncoder(out)
	// Before the first round, everything is written once: the disks' files grow with
	// that, and blocks of the volume can be read only when they were written.
	for round := -1; round < *rounds; round++ {
		for _, place := range figures.InTurn(places, max(round, 0)) {
			sample, err := place.Measure(*size)
			if err != nil {
				return err
			}
			if round < 0 {
				continue
			}
			if err := encoder.Encode(sample); err != nil {
				return err
			}
		}
	}
	return nil
}

// Disks, by the kernel's names.
const (
	bareDisk  = "vda"
	plainDisk = "vdb"
	stateDisk = "vdc"
)

// prepare makes what is measured. What it returns undoes that.
func prepare(ctx context.Context, template string) ([]transfer.Place, func() error, error) {
	plain, templateSize, err := mountPlain(template)
	if err != nil {
		return nil, nil, fmt.Errorf("make a file system: %w", err)
	}
	v, state, err := mountVolume(ctx, template)
	if err != nil {
		return nil, nil, err
	}
	held, err := journalSize()
	if err != nil {
		return nil, nil, err
	}
	done := func() error {
		return errors.Join(unix.Unmount(filepath.Dir(plain), 0), unix.Unmount(filepath.Dir(state), 0), v.Close())
	}
	return []transfer.Place{
		{Name: transfer.Bare, Path: "/dev/" + bareDisk, Disk: bareDisk},
		{Name: transfer.Plain, Path: plain, Disk: plainDisk},
		// Beyond the file system.
		{Name: transfer.Volume, Path: v.Device(), Offset: templateSize, Disk: stateDisk, Held: held},
		{Name: transfer.State, Path: state, Disk: stateDisk, Held: held},
	}, done, nil
}

// journalSize returns the size in bytes that the journal of dm-integrity doesn't exceed:
// a 128th of the disk (Linux, drivers/md/dm-integrity.c).
func journalSize() (int64, error) {
	disk, err := os.Open("/dev/" + stateDisk)
	if err != nil {
		return 0, err
	}
	size, err := disk.Seek(0, io.SeekEnd)
	return size / 128, errors.Join(err, disk.Close())
}

// mountPlain puts the file system of state volumes on a disk as it is, and returns the
// path of a file there, and the file system's size in bytes.
func mountPlain(template string) (_ string, size int64, err error) {
	source, err := os.Open(template)
	if err != nil {
		return "", 0, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	decoder, err := zstd.NewReader(source)
	if err != nil {
		return "", 0, err
	}
	defer decoder.Close()
	disk, err := os.OpenFile("/dev/"+plainDisk, os.O_WRONLY, 0)
	if err != nil {
		return "", 0, err
	}
	size, err = io.Copy(disk, decoder)
	if err := errors.Join(err, disk.Sync(), disk.Close()); err != nil {
		return "", 0, err
	}
	folder, err := makeFolder("/plain")
	if err != nil {
		return "", 0, err
	}
	if err := unix.Mount("/dev/"+plainDisk, folder, "ext4", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "errors=remount-ro"); err != nil {
		return "", 0, fmt.Errorf("mount it: %w", err)
	}
	path, err := makeFile(folder)
	return path, size, err
}

// mountVolume makes a state volume, and returns the path of a file there.
func mountVolume(ctx context.Context, template string) (_ *volume.Volume, _ string, err error) {
	source, err := os.Open(template)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	v, err := volume.Format(ctx, volume.Options{
		Partition: "/dev/" + stateDisk,
		Owner:     header.Owner{Volume: volumeid.ID{1}, Node: pki.NodeID{1}, Name: "measured"},
		Admin:     &header.Key{1},
		Template:  source,
		Random:    rand.Reader,
	})
	if err != nil {
		return nil, "", err
	}
	folder, err := makeFolder("/state")
	if err != nil {
		return nil, "", err
	}
	if err := v.Mount(folder); err != nil {
		return nil, "", err
	}
	name, err := makeFile(folder)
	return v, name, err
}

func makeFolder(path string) (string, error) { return path, os.MkdirAll(path, 0o700) }

func makeFile(folder string) (string, error) {
	name := filepath.Join(folder, "file")
	return name, os.WriteFile(name, nil, 0o600)
}
