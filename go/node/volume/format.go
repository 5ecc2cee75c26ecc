package volume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"powercloud.unidatum.com/go/node/volume/header"
)

// Options are what Format makes a volume of.
type Options struct {
	// Partition is the path of the state partition's device.
	Partition string
	// Owner says whose the volume is.
	Owner header.Owner
	// Admin is the key that unlocks it.
	Admin *header.Key
	// Template is the file system that the volume begins with, made by package
	// go/image/ext4 and compressed by Zstandard.
	Template io.Reader
	// Random is a cryptographically secure source.
	Random io.Reader
	// Populate puts onto the volume what must be there from its beginning, and mounts it
	// for that; nil for nothing. If it fails it has unmounted the volume again.
	Populate func(context.Context, *Volume) error

	// step is called after each step that lasts. Tests cut the power there.
	step func(name string) error
}

// Format makes a volume on a blank partition, and opens it. The header is written last:
// until then the partition is blank and can be formatted again, whatever happened.
func Format(ctx context.Context, o Options) (*Volume, error) {
	copies, err := Look(o.Partition)
	switch {
	case err == nil:
		return nil, fmt.Errorf("state disk %s already holds the volume %s", o.Partition, copies[0].Owner.Volume)
	case !errors.Is(err, ErrBlank):
		return nil, err
	}
	v, err := o.format(ctx)
	if err != nil {
		return nil, fmt.Errorf("format the state disk %s: %w", o.Partition, err)
	}
	return v, nil
}

func (o Options) format(ctx context.Context) (_ *Volume, err error) {
	h, key, err := header.New(o.Random, o.Owner, o.Admin)
	if err != nil {
		return nil, err
	}
	defer key.Wipe()
	if err := o.clearSuperblock(); err != nil {
		return nil, err
	}
	if o.step != nil {
		if err := o.step("superblock"); err != nil {
			return nil, err
		}
	}
	v, err := assemble(o.Partition, o.Owner.Volume, key)
	if err != nil {
		return nil, err
	}
	v.step = o.step
	defer func() {
		if err != nil {
			err = errors.Join(err, v.Close())
		}
	}()
	if err := v.done("devices"); err != nil {
		return nil, err
	}
	if err := v.writeTemplate(ctx, o.Template, o.Random); err != nil {
		return nil, err
	}
	if err := v.done("file system"); err != nil {
		return nil, err
	}
	if o.Populate != nil {
		if err := o.Populate(ctx, v); err != nil {
			return nil, err
		}
		if err := v.done("content"); err != nil {
			return nil, err
		}
	}
	err = withDisk(o.Partition, func(disk *os.File) error { return h.Write(steppedDisk{disk, v}) })
	if err != nil {
		return nil, err
	}
	return v, v.done("header")
}

// steppedDisk is a disk on which each copy of the header that lasts is a step.
type steppedDisk struct {
	*os.File
	volume *Volume
}

func (d steppedDisk) Sync() error {
	if err := d.File.Sync(); err != nil {
		return err
	}
	return d.volume.done("header copy")
}

// clearSuperblock overwrites the superblock of dm-integrity, so that the kernel makes a
// new one: there may be one from a format that was cut off, with a journal of data
// under another key.
func (o Options) clearSuperblock() error {
	return withDisk(o.Partition, func(disk *os.File) error {
		size, err := disk.Seek(0, io.SeekEnd)
		if err != nil {
			return err
		}
		if size < MinSize {
			return fmt.Errorf("it has %d MiB, and a state volume takes %d", size>>20, MinSize>>20)
		}
		if _, err := disk.WriteAt(make([]byte, blockSize), header.Area); err != nil {
			return err
		}
		return disk.Sync()
	})
}
