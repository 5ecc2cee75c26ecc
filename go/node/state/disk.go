package state

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"powercloud.unidatum.com/go/node/volume"
	"powercloud.unidatum.com/go/node/volume/header"
	"powercloud.unidatum.com/go/sys/dm"
	"powercloud.unidatum.com/go/sys/mounts"
)

// Disk is a place on an encrypted volume.
type Disk struct {
	// Partition is the path of the state partition's device.
	Partition string
	// Target is the folder where the volume is mounted.
	Target string
	// Template opens the file system that a new volume begins with.
	Template func() (io.ReadCloser, error)
	// Random is a cryptographically secure source.
	Random io.Reader
	Log    *slog.Logger

	mu     sync.Mutex
	volume *volume.Volume
	filled int64
}

var _ Place = (*Disk)(nil)

// Encrypts reports that all of it is encrypted.
func (*Disk) Encrypts() bool { return true }

// Look returns what is on the partition. A volume that an earlier process of this boot
// has opened is open.
func (d *Disk) Look() (Found, error) {
	copies, err := volume.Look(d.Partition)
	if errors.Is(err, volume.ErrBlank) || errors.Is(err, volume.ErrForeign) {
		// Create says what is wrong with what is foreign. A Create that was cut off with
		// its process can have left its volume mounted.
		return Found{Condition: Blank}, d.unmount()
	}
	if err != nil {
		return Found{}, err
	}
	v, err := volume.Reopen()
	if errors.Is(err, dm.ErrNone) {
		return Found{Condition: Locked, Owners: copies.Owners()}, nil
	}
	if err != nil {
		return Found{}, err
	}
	if err := d.mount(v); err != nil {
		return Found{}, err
	}
	return Found{Condition: Open, Folder: d.Target}, nil
}

// Create formats the partition if it is blank. What populate puts onto the volume is
// there before the volume's header is, so that no volume is without it.
func (d *Disk) Create(ctx context.Context, owner header.Owner, key *header.Key, populate func(folder string) error) (string, error) {
	template, err := d.Template()
	if err != nil {
		return "", err
	}
	defer template.Close()
	_, err = volume.Format(ctx, volume.Options{
		Partition: d.Partition, Owner: owner, Admin: key, Template: template, Random: d.Random,
		Populate: func(_ context.Context, v *volume.Volume) error {
			if err := d.mount(v); err != nil {
				return err
			}
			if err := errors.Join(populate(d.Target), syncFileSystem(d.Target)); err != nil {
				return errors.Join(err, d.unmount())
			}
			return nil
		},
	})
	if err != nil {
		return "", errors.Join(err, d.unmount())
	}
	return d.Target, nil
}

// Unlock opens the volume with the admin's key.
func (d *Disk) Unlock(key *header.Key) (string, header.Owner, error) {
	v, owner, err := volume.Unlock(d.Partition, key)
	if err != nil {
		return "", header.Owner{}, err
	}
	if v.Unrepaired != nil {
		d.Log.Warn("a copy of the state volume's header is damaged and can't be repaired; replace the disk", "err", v.Unrepaired)
	}
	if err := d.mount(v); err != nil {
		return "", header.Owner{}, errors.Join(err, v.Close())
	}
	return d.Target, owner, nil
}

// Erase destroys the volume's header. What is mounted stays readable until the machine
// stops, which is the caller's next step.
func (d *Disk) Erase() error { return volume.Erase(d.Partition) }

// Grow fills the volume with zeros and grows its file system.
func (d *Disk) Grow(ctx context.Context) error {
	v := d.opened()
	if v == nil {
		return errors.New("the state volume isn't open")
	}
	err := v.Grow(ctx, d.Target, func(p volume.Progress) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.filled = p.Filled
	})
	if err == nil {
		d.Log.Info("the state volume fills its partition", "bytes", v.Size())
	}
	return err
}

// Space returns how much room the volume has.
func (d *Disk) Space() (Space, error) {
	v := d.opened()
	if v == nil {
		return Space{}, nil
	}
	room, err := v.Space(d.Target)
	if err != nil {
		return Space{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return Space{Encrypted: true, Space: room, Filled: d.filled}, nil
}

func (d *Disk) opened() *volume.Volume {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.volume
}

// mount mounts a volume, unless it is mounted, and takes it over.
func (d *Disk) mount(v *volume.Volume) error {
	mounted, err := d.mounted()
	if err != nil {
		return err
	}
	if !mounted {
		if err := os.MkdirAll(d.Target, 0o700); err != nil {
			return err
		}
		if err := v.Mount(d.Target); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.volume = v
	return nil
}

func (d *Disk) mounted() (bool, error) {
	targets, err := mounts.Targets()
	return slices.Contains(targets, d.Target), err
}

// unmount unmounts what is mounted at the target, if anything is.
func (d *Disk) unmount() error {
	d.mu.Lock()
	d.volume = nil
	d.mu.Unlock()
	mounted, err := d.mounted()
	if err != nil || !mounted {
		return err
	}
	if err := unix.Unmount(d.Target, 0); err != nil {
		return fmt.Errorf("unmount the state volume: %w", err)
	}
	return nil
}

// syncFileSystem returns when everything that was written to a file system lasts.
func syncFileSystem(target string) error {
	folder, err := os.Open(target)
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := unix.Syncfs(int(folder.Fd())); err != nil {
		return fmt.Errorf("sync the state volume: %w", err)
	}
	return nil
}
