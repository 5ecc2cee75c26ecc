package header

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
)

// PartitionType is the GPT type of a state partition, by which nodes know it.
const PartitionType = "C79A858A-2459-4D7F-B235-89112A276786"

// Where the header is on a state partition, in bytes.
const (
	// Area is the size of what the header has for itself. The sectors of the volume
	// begin after it, and a partition of whose first Area bytes all are zeros is
	// blank.
	Area = 1 << 20
	// primaryOffset and backupOffset are where the two copies begin.
	primaryOffset = 0
	backupOffset  = Area / 2
	// erasing is what a partition begins with while its header is erased, and
	// markSize the size of the mark, which disks write as one.
	erasing  = "PCerased"
	markSize = 512
)

// ErrNone is wrapped by Read's error for a partition that has neither copy: it is
// blank, or belongs to something else.
var ErrNone = errors.New("there is no volume header")

// ErrErasing is wrapped by Read's error for a partition whose header was being
// erased when the power was cut.
var ErrErasing = errors.New("the volume header was not erased to the end")

// Disk is what a header is written to.
type Disk interface {
	io.ReaderAt
	io.WriterAt
	// Sync returns when what was written lasts.
	Sync() error
}

// Blank tells whether a partition is blank: its first mebibyte is zeros.
func Blank(disk io.ReaderAt) (bool, error) {
	area := make([]byte, Area)
	if _, err := disk.ReadAt(area, 0); err != nil {
		return false, fmt.Errorf("read the first MiB: %w", err)
	}
	return len(bytes.Trim(area, "\x00")) == 0, nil
}

// Copies are the intact copies of a volume's header, the one to prefer first. They
// are one or two.
type Copies []*Header

// Read reads both copies. Neither is authentic yet. A damaged one is left out; where
// both are, the error wraps ErrHeader. Where neither copy even begins as a header
// does, it wraps ErrNone.
func Read(disk io.ReaderAt) (Copies, error) {
	var found Copies
	var failures []error
	begun := false
	for _, offset := range []int64{primaryOffset, backupOffset} {
		content := make([]byte, MaxSize)
		if _, err := disk.ReadAt(content, offset); err != nil {
			failures = append(failures, fmt.Errorf("read the volume header: %w", err))
			begun = true // Nobody knows.
			continue
		}
		if offset == primaryOffset && bytes.HasPrefix(content, []byte(erasing)) {
			return nil, ErrErasing
		}
		begun = begun || bytes.HasPrefix(content, []byte(magic))
		h, err := Parse(content)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		found = append(found, h)
	}
	switch {
	case len(found) == 0 && begun:
		return nil, fmt.Errorf("both copies of the volume header are damaged: %w", errors.Join(failures...))
	case len(found) == 0:
		return nil, ErrNone
	case len(found) == 2 && found[1].Serial > found[0].Serial:
		found[0], found[1] = found[1], found[0]
	}
	return found, nil
}

// Owners returns whose the volume is by each of its copies, without repeating one.
// They are two only where somebody altered one.
func (c Copies) Owners() []Owner {
	owners := []Owner{c[0].Owner}
	if last := c[len(c)-1].Owner; last.Volume != owners[0].Volume || last.Node != owners[0].Node {
		owners = append(owners, last)
	}
	return owners
}

// Unlock opens the preferred copy that the admin's key opens and that is authentic.
func (c Copies) Unlock(admin *Key) (*Header, *Key, error) {
	return c.UnlockWith(func(h *Header) (*Key, error) { return h.Unlock(admin) })
}

// UnlockWith is Unlock for other slots: open is given each copy and returns the
// volume key.
func (c Copies) UnlockWith(open func(*Header) (*Key, error)) (*Header, *Key, error) {
	var failures []error
	for _, h := range c {
		key, err := open(h)
		if err == nil {
			if err = h.Verify(key); err == nil {
				return h, key, nil
			}
			key.Wipe()
		}
		failures = append(failures, err)
	}
	if !slices.ContainsFunc(failures, func(err error) bool { return !errors.Is(err, ErrWrongKey) }) {
		return nil, nil, ErrWrongKey
	}
	return nil, nil, errors.Join(failures...)
}

// Write writes both copies, the backup first and each synced before the next. What is
// there already isn't written again. So one copy is whole at every moment, provided
// that one was: on a blank partition h's first 512 bytes, which disks write as one,
// must be all of it, as they are of a header that New makes; otherwise one of the
// copies must be h's already. Replace sees to that.
func (h *Header) Write(disk Disk) error {
	// Up to the end, so that nothing stays of a longer header that was there.
	content := append(h.Marshal(), make([]byte, MaxSize-h.size())...)
	for _, offset := range []int64{backupOffset, primaryOffset} {
		if err := update(disk, content, offset); err != nil {
			return fmt.Errorf("write the volume header: %w", err)
		}
	}
	return nil
}

// update writes the content unless it is there.
func update(disk Disk, content []byte, offset int64) error {
	there := make([]byte, len(content))
	if _, err := disk.ReadAt(there, offset); err == nil && bytes.Equal(there, content) {
		return nil
	}
	if _, err := disk.WriteAt(content, offset); err != nil {
		return err
	}
	return disk.Sync()
}

// Replace writes next in place of h, which must be authentic and on the disk, in one
// copy at least.
func (h *Header) Replace(disk Disk, next *Header) error {
	if err := h.Write(disk); err != nil {
		return err
	}
	return next.Write(disk)
}

// Erase overwrites both copies with zeros, so that no slot can be opened any more and
// the partition is blank. Where it is cut off, Read's error wraps ErrErasing, and it
// must be called again.
func Erase(disk Disk) error {
	zeros := make([]byte, Area)
	mark := append([]byte(erasing), zeros[len(erasing):markSize]...)
	for _, step := range []struct {
		content []byte
		offset  int64
	}{{mark, 0}, {zeros[markSize:], markSize}, {zeros[:markSize], 0}} {
		_, err := disk.WriteAt(step.content, step.offset)
		if err == nil {
			err = disk.Sync()
		}
		if err != nil {
			return fmt.Errorf("erase the volume header: %w", err)
		}
	}
	return nil
}
