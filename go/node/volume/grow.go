package volume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// mountFlags are how a state volume is mounted. Programs of apps are in images,
	// never on it.
	mountFlags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	// mountOptions have the file system stop writing when it finds that it is
	// damaged, instead of making it worse.
	mountOptions = "errors=remount-ro"

	// resizeRequest is EXT4_IOC_RESIZE_FS (Linux, fs/ext4/ext4.h), which takes a
	// number of blocks.
	resizeRequest = 0x40086610
	// groupSize is the size in bytes of ext4's groups of blocks.
	groupSize = 128 << 20
	// steps is how many of the largest steps make a volume, or somewhat fewer than do:
	// they are of whole groups, one at least.
	steps = 64
	// minTail is how much at the end, in bytes, is too little for a group.
	minTail = 16 << 20
	// zeroSize is how many bytes are filled with zeros at once, a multiple of
	// blockSize.
	zeroSize = 8 << 20
)

// Mount mounts the volume's file system at a folder.
func (v *Volume) Mount(target string) error {
	if err := unix.Mount(v.device, target, "ext4", mountFlags, mountOptions); err != nil {
		return fmt.Errorf("mount the state volume: %w", err)
	}
	return nil
}

// Progress is how far a volume has grown.
type Progress struct {
	// Filled is how many of the volume's Total bytes can be read.
	Filled, Total int64
}

// Grow fills what lies beyond the file system, which is mounted at the target, with
// zeros, and grows the file system into it, until it has the volume's size. It takes as
// long as writing all of the disk does. After a power cut or an error it goes on from
// the file system's size, of which it reports the growth.
func (v *Volume) Grow(ctx context.Context, target string, report func(Progress)) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("grow the state volume: %w", err)
		}
	}()
	folder, err := os.Open(target)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	device, err := os.OpenFile(v.device, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, device.Close()) }()
	for {
		size, err := fileSystemSize(device)
		if err != nil {
			return err
		}
		next := nextSize(size, v.size)
		if next == size {
			report(Progress{v.size, v.size})
			return nil
		}
		if err := v.fill(ctx, device, size, next, report); err != nil {
			return err
		}
		if err := v.done("filled"); err != nil {
			return err
		}
		if err := resize(folder, next); err != nil {
			return err
		}
		if grown, err := fileSystemSize(device); err != nil {
			return err
		} else if grown <= size {
			return fmt.Errorf("the file system stays at %d bytes", size)
		}
		if err := v.done("resized"); err != nil {
			return err
		}
	}
}

// nextSize is the size in bytes that a file system grows to in one step. It is the
// same size where it has all that it can use of the volume.
func nextSize(size, volume int64) int64 {
	// It doubles at first, so that there is soon room on a large disk too.
	step := max(min(max(volume/steps, groupSize), size), blockSize)
	if step > groupSize {
		step -= step % groupSize
	}
	next := (size/step + 1) * step
	// What would be left over at the end goes with the last step, as far as there can
	// be a group of it.
	if volume-next < minTail {
		next = volume / blockSize * blockSize
		if tail := next % groupSize; tail < minTail {
			next -= tail
		}
	}
	return max(next, size)
}

// fill writes zeros, so that the sectors can be read, and returns when they last.
func (v *Volume) fill(ctx context.Context, device *os.File, from, to int64, report func(Progress)) error {
	for at := from; at < to; at += zeroSize {
		if err := ctx.Err(); err != nil {
			return err
		}
		report(Progress{at, v.size})
		area := [2]uint64{uint64(at), uint64(min(to-at, zeroSize))}
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, device.Fd(), unix.BLKZEROOUT, uintptr(unsafe.Pointer(&area))); errno != 0 {
			return fmt.Errorf("fill the volume with zeros at %d: %w", at, errno)
		}
		if err := v.done("zeros"); err != nil {
			return err
		}
	}
	return device.Sync()
}

// resize grows the file system that a folder is on to a size in bytes. The kernel takes
// a little less where it can't make a group of the rest.
func resize(folder *os.File, size int64) error {
	blocks := uint64(size / blockSize)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, folder.Fd(), resizeRequest, uintptr(unsafe.Pointer(&blocks))); errno != 0 {
		return fmt.Errorf("resize the file system to %d bytes: %w", size, errno)
	}
	return nil
}

// Space is how much room a volume has, in bytes.
type Space struct {
	// Size is the volume's, and Free what can still be written, as far as the file
	// system has grown.
	Size, Free int64
}

// Space returns the room on the volume, which is mounted at the target.
func (v *Volume) Space(target string) (Space, error) {
	var status unix.Statfs_t
	if err := unix.Statfs(target, &status); err != nil {
		return Space{}, fmt.Errorf("look for room on the state volume: %w", err)
	}
	return Space{v.size, int64(status.Bavail) * status.Bsize}, nil
}
