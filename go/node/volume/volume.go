// Package volume is a node's state volume: an ext4 file system on a partition of the
// node's disk that is encrypted, and on which every sector has a tag, so that what
// was changed while the node was off is an error and never other data.
// docs/formats.md, "State volume", describes it.
//
// From below to above there are the partition, with the header in its first MiB
// (package header); dm-integrity, which keeps the tags and has a journal, so that a
// sector and its tag change together; dm-crypt, with AES-256 in XTS mode and
// HMAC-SHA256; and ext4. A sector that was never written has no valid tag and can't
// be read. So a new volume's file system is small, and all of it is written at once.
// What lies beyond it is filled with zeros in the background, and the file system
// grows into it step by step. Its size is then how far the filling has come, which a
// power cut doesn't change.
package volume

import (
	"errors"
	"fmt"
	"io"
	"os"

	"powercloud.unidatum.com/go/node/volume/header"
	"powercloud.unidatum.com/go/sys/dm"
)

// MinSize is the size in bytes that a state partition has at least.
const MinSize = 128 << 20

// ErrBlank is wrapped by errors for a partition that holds nothing yet: its first MiB
// is zeros. Format makes a volume of it.
var ErrBlank = errors.New("is blank")

// ErrForeign is wrapped by errors for a partition that holds something else.
var ErrForeign = errors.New("holds data that is not a PowerCloud volume; refusing to format it")

// ErrHeaderless is wrapped by Wipe's error for a partition that holds something else than
// a header, and after it what a volume has there.
var ErrHeaderless = errors.New("there is no volume header, but a volume's sectors may follow")

// Look returns the header of the volume on a partition, of which nothing is authentic
// yet. Where there is none the error wraps ErrBlank or ErrForeign, and where both of
// its copies are damaged, header.ErrHeader. It finishes an Erase that was cut off.
func Look(partition string) (header.Copies, error) {
	disk, err := os.OpenFile(partition, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("state disk: %w", err)
	}
	copies, err := look(disk)
	if errors.Is(err, ErrForeign) {
		err = fmt.Errorf("%w (the boot option powercloud.state.wipe=1 wipes it)", err)
	}
	if err = errors.Join(err, disk.Close()); err != nil {
		return nil, fmt.Errorf("state disk %s %w", partition, err)
	}
	return copies, nil
}

func look(disk *os.File) (header.Copies, error) {
	copies, err := header.Read(disk)
	if errors.Is(err, header.ErrErasing) {
		if err := header.Erase(disk); err != nil {
			return nil, fmt.Errorf("can't be used: %w", err)
		}
		return nil, ErrBlank
	}
	if errors.Is(err, header.ErrNone) {
		blank, err := header.Blank(disk)
		switch {
		case err != nil:
			return nil, fmt.Errorf("can't be used: %w", err)
		case blank:
			return nil, ErrBlank
		}
		return nil, ErrForeign
	}
	if err != nil {
		return nil, fmt.Errorf("can't be used: %w", err)
	}
	return copies, nil
}

// Wipe makes a partition blank that holds something else than a volume, of which it
// overwrites the first MiB, and reports whether it did. A volume stays, and so does one
// with a copy of the header, damaged or not, that begins as one. Where neither does, it
// stays if what follows begins as a volume's sectors do, and the error wraps
// ErrHeaderless. Where that is overwritten too, nothing tells a volume from other data,
// and it is wiped.
func Wipe(partition string) (wiped bool, err error) {
	_, err = Look(partition)
	switch {
	case errors.Is(err, ErrForeign):
		err = withDisk(partition, wipe)
		return err == nil, err
	case errors.Is(err, ErrBlank), errors.Is(err, header.ErrHeader):
		return false, nil
	}
	return false, err
}

// integrityMagic is what dm-integrity's superblock begins with (SB_MAGIC in Linux's
// drivers/md/dm-integrity.c).
const integrityMagic = "integrt\x00"

// wipe erases what isn't a header, unless a volume's sectors follow.
func wipe(disk *os.File) error {
	begin := make([]byte, len(integrityMagic))
	// A partition can end there.
	if _, err := disk.ReadAt(begin, header.Area); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("can't be wiped: %w", err)
	}
	if string(begin) == integrityMagic {
		return ErrHeaderless
	}
	return header.Erase(disk)
}

// Volume is an open state volume.
type Volume struct {
	// Unrepaired is why a copy of the header that isn't as it should be could not be
	// written again when the volume was unlocked by the other; nil if both are as they
	// should be.
	Unrepaired error

	stack stack
	// device is what the file system is on, and size its size in bytes.
	device string
	size   int64
	// step is called after each step that lasts. Tests cut the power there.
	step func(name string) error
}

// Size returns the volume's size in bytes, that of what is still to be filled
// included.
func (v *Volume) Size() int64 { return v.size }

// Device returns the path of the device that the file system is on.
func (v *Volume) Device() string { return v.device }

// Unlock opens the volume on a partition with the admin's key.
func Unlock(partition string, admin *header.Key) (*Volume, header.Owner, error) {
	return UnlockWith(partition, func(h *header.Header) (*header.Key, error) { return h.Unlock(admin) })
}

// UnlockWith opens the volume on a partition. open is given each copy of the header
// that isn't damaged and returns the volume key by one of its slots; the key is wiped
// afterwards. A copy of the header that isn't as it should be is repaired, and where the
// disk doesn't take it, the volume says so: the other copy is there for that.
//
// The owner is authentic.
func UnlockWith(partition string, open func(*header.Header) (*header.Key, error)) (*Volume, header.Owner, error) {
	copies, err := Look(partition)
	if err != nil {
		return nil, header.Owner{}, err
	}
	h, key, err := copies.UnlockWith(open)
	if err != nil {
		return nil, header.Owner{}, fmt.Errorf("unlock the state disk %s: %w", partition, err)
	}
	defer key.Wipe()
	unrepaired := writeHeader(partition, h)
	v, err := assemble(partition, h.Owner.Volume, key)
	if err != nil {
		return nil, header.Owner{}, errors.Join(fmt.Errorf("open the state disk %s: %w", partition, err), unrepaired)
	}
	v.Unrepaired = unrepaired
	return v, h.Owner, nil
}

// Change replaces the header of a volume, which may be open: change is given the one
// that there is, authentic, with its volume key, and returns the next.
func Change(partition string, open func(*header.Header) (*header.Key, error), change func(*header.Header, *header.Key) (*header.Header, error)) error {
	copies, err := Look(partition)
	if err != nil {
		return err
	}
	h, key, err := copies.UnlockWith(open)
	if err != nil {
		return fmt.Errorf("unlock the state disk %s: %w", partition, err)
	}
	defer key.Wipe()
	next, err := change(h, key)
	if err != nil {
		return fmt.Errorf("change the header of the state disk %s: %w", partition, err)
	}
	return withDisk(partition, func(disk *os.File) error { return h.Replace(disk, next) })
}

// Erase makes a partition blank again: without the header, nobody can open the volume
// any more. One that is open stays readable until it is closed.
func Erase(partition string) error {
	return withDisk(partition, func(disk *os.File) error { return header.Erase(disk) })
}

func writeHeader(partition string, h *header.Header) error {
	return withDisk(partition, func(disk *os.File) error { return h.Write(disk) })
}

// withDisk opens a partition for an operation on its header.
func withDisk(partition string, do func(*os.File) error) error {
	disk, err := os.OpenFile(partition, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("state disk: %w", err)
	}
	if err := errors.Join(do(disk), disk.Close()); err != nil {
		return fmt.Errorf("state disk %s: %w", partition, err)
	}
	return nil
}

// Reopen returns the volume that an earlier process of this boot opened and left so.
// Where there is none, the error wraps dm.ErrNone.
func Reopen() (*Volume, error) {
	mapper, err := dm.Open()
	if err != nil {
		return nil, err
	}
	v, err := reopen(mapper)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("find the open state volume: %w", err), mapper.Close())
	}
	return v, nil
}

func reopen(mapper *dm.Mapper) (*Volume, error) {
	device, err := mapper.Device(cryptName)
	if err != nil {
		return nil, err
	}
	table, err := mapper.Table(cryptName)
	if err != nil {
		return nil, err
	}
	if len(table) != 1 || device.Suspended {
		// It was cut off while it was assembled.
		return nil, fmt.Errorf("%w that is complete", dm.ErrNone)
	}
	return &Volume{stack: stack{mapper}, device: device.Path, size: int64(table[0].Length) * dm.SectorSize}, nil
}

// Close takes the volume's devices away; the kernel forgets its key. It must not be
// mounted any more.
func (v *Volume) Close() error {
	if err := errors.Join(v.stack.remove(), v.stack.mapper.Close()); err != nil {
		return fmt.Errorf("close the state volume: %w", err)
	}
	return nil
}

// done tells a test that a step is done.
func (v *Volume) done(step string) error {
	if v.step == nil {
		return nil
	}
	return v.step(step)
}
