package volume

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"powercloud.unidatum.com/go/node/volume/header"
	"powercloud.unidatum.com/go/sys/dm"
	"powercloud.unidatum.com/tools/lint"
)

// admin is the key that opens the volumes of these tests.
var admin = &header.Key{0xad}

// inMachine skips a test that doesn't run in a machine with the node's kernel and
// blank disks, and returns the disks.
func inMachine(t *testing.T) []string {
	t.Helper()
	disks := strings.Fields(os.Getenv("VOLUME_DISKS"))
	if len(disks) == 0 {
		t.Skip("it needs a node's kernel: bazel test //go/node/volume:all")
	}
	return disks
}

// template opens the file system that volumes begin with.
func template(t *testing.T) io.Reader {
	t.Helper()
	name, err := lint.Runfile(os.Getenv("VOLUME_TEMPLATE"))
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(content)
}

// A supply is a part of a disk, as a device of its own, whose power can be cut: then
// nothing is read or written any more, whatever was on its way.
type supply struct {
	t      *testing.T
	mapper *dm.Mapper
	name   string
	on     dm.Target
	// disk is the disk's path, and path the supply's own.
	disk, path string
}

// newSupply makes one of the first size bytes of a disk, all zeros.
func newSupply(t *testing.T, disk string, size int64) *supply {
	t.Helper()
	mapper, err := dm.Open()
	if err != nil {
		t.Fatal(err)
	}
	s := &supply{t: t, mapper: mapper, name: "supply", disk: disk, on: dm.Target{Length: uint64(size) / dm.SectorSize, Type: "linear", Parameters: disk + " 0"}}
	s.must(mapper.Create(s.name))
	s.must(mapper.Load(s.name, s.on))
	device, err := mapper.Resume(s.name)
	s.must(err)
	s.path = device.Path
	t.Cleanup(func() {
		// A test that failed leaves a volume.
		s.must(errors.Join(stack{mapper}.remove(), mapper.Remove(s.name), mapper.Close()))
	})
	s.wipe()
	return s
}

func (s *supply) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// wipe makes all of it zeros again.
func (s *supply) wipe() {
	s.t.Helper()
	file, err := os.OpenFile(s.path, os.O_RDWR, 0)
	s.must(err)
	s.must(unix.IoctlSetInt(int(file.Fd()), unix.BLKFLSBUF, 0))
	s.must(zeroOut(file, 0, int64(s.on.Length)*dm.SectorSize))
	s.must(file.Close())
}

// resizeTo makes it a part of another size.
func (s *supply) resizeTo(size int64) {
	s.t.Helper()
	s.on.Length = uint64(size) / dm.SectorSize
	s.must(s.replace(s.on))
}

// cut cuts the power.
func (s *supply) cut() error {
	return s.replace(dm.Target{Length: s.on.Length, Type: "error"})
}

// cutAfter cuts the power once so many more writes have begun, while the caller goes on.
// What it returns waits until it has cut, or until there is nothing more to wait for,
// and tells which.
func (s *supply) cutAfter(writes uint64) (settle func() bool) {
	s.t.Helper()
	first, err := s.writes()
	s.must(err)
	over, ended := make(chan struct{}), make(chan error, 1)
	wasCut := false
	go func() {
		for {
			now, err := s.writes()
			if err == nil && now-first >= writes {
				wasCut = true
				err = s.cut()
			}
			if err != nil || wasCut {
				ended <- err
				return
			}
			select {
			case <-over:
				ended <- nil
				return
			default:
			}
		}
	}()
	return func() bool {
		close(over)
		s.must(<-ended)
		return wasCut
	}
}

// writes is how many writes the kernel has sent to the supply so far (Linux,
// Documentation/block/stat.rst).
func (s *supply) writes() (uint64, error) {
	const index = 4
	content, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(s.path), "stat"))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(content))
	if len(fields) <= index {
		return 0, fmt.Errorf("the kernel's statistics are %q", content)
	}
	return strconv.ParseUint(fields[index], 10, 64)
}

// breakAt has nothing between two places be read or written any more, in bytes.
func (s *supply) breakAt(from, to int64) {
	s.t.Helper()
	linear := func(from, to uint64) dm.Target {
		return dm.Target{Start: from, Length: to - from, Type: "linear", Parameters: fmt.Sprintf("%s %d", s.disk, from)}
	}
	first, last := uint64(from)/dm.SectorSize, uint64(to)/dm.SectorSize
	table := []dm.Target{{Start: first, Length: last - first, Type: "error"}, linear(last, s.on.Length)}
	if first > 0 {
		table = append([]dm.Target{linear(0, first)}, table...)
	}
	s.must(s.replace(table...))
}

// restore switches the power on again. What the kernel held in memory is gone, as it
// is after a boot.
func (s *supply) restore() {
	s.t.Helper()
	file, err := os.Open(s.path)
	s.must(err)
	s.must(unix.IoctlSetInt(int(file.Fd()), unix.BLKFLSBUF, 0))
	s.must(file.Close())
	s.must(s.replace(s.on))
}

func (s *supply) replace(table ...dm.Target) error {
	err := s.mapper.Load(s.name, table...)
	if err == nil {
		err = s.mapper.Interrupt(s.name)
	}
	if err == nil {
		_, err = s.mapper.Resume(s.name)
	}
	return err
}

// options are what the tests format.
func (s *supply) options() Options {
	return Options{Partition: s.path, Owner: owner, Admin: admin, Template: template(s.t), Random: rand.Reader}
}

// format makes a volume.
func (s *supply) format() *Volume {
	s.t.Helper()
	v, err := Format(s.t.Context(), s.options())
	s.must(err)
	return v
}

// unlock opens the volume.
func (s *supply) unlock() *Volume {
	s.t.Helper()
	v, found, err := Unlock(s.path, admin)
	s.must(err)
	if found != owner {
		s.t.Errorf("the owner is %+v", found)
	}
	return v
}

// mount mounts a volume.
func (s *supply) mount(v *Volume) string {
	s.t.Helper()
	folder := s.t.TempDir()
	s.must(v.Mount(folder))
	s.t.Cleanup(func() { _ = unix.Unmount(folder, unix.MNT_DETACH) })
	return folder
}

// end unmounts a volume and closes it.
func (s *supply) end(v *Volume, folder string) {
	s.t.Helper()
	s.must(unix.Unmount(folder, 0))
	s.must(v.Close())
}

// content is what the tests store.
var content = bytes.Repeat([]byte("what is stored on the volume, "), 40_000)

// store stores the content, and returns when it lasts.
func store(folder string, content []byte) error {
	file, err := os.Create(filepath.Join(folder, "file"))
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	opened, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(opened.Sync(), opened.Close())
}

func (s *supply) store(folder string) {
	s.t.Helper()
	s.must(store(folder, content))
}

func (s *supply) check(folder string) {
	s.t.Helper()
	s.checkContent(folder, content)
}

func (s *supply) checkContent(folder string, want []byte) {
	s.t.Helper()
	if got, err := os.ReadFile(filepath.Join(folder, "file")); err != nil || !bytes.Equal(got, want) {
		s.t.Errorf("the file has %d bytes and not the %d that were stored, %v", len(got), len(want), err)
	}
}

// zeroOut fills a part of a device with zeros.
func zeroOut(file *os.File, from, size int64) error {
	v := &Volume{size: from + size}
	return v.fill(context.Background(), file, from, from+size, func(Progress) {})
}
