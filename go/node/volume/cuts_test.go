package volume

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"powercloud.unidatum.com/go/sys/dm"
)

var errCut = errors.New("the power is cut")

// The volumes here are about as small as there can be: what is at stake in a cut is the
// order of a few writes, and every one of these tests opens a volume many times.
const smallest = 144 * mib

// TestCutFormat cuts the power after every step of formatting, and after ever more
// writes. Then the partition is blank, and can be formatted as it is, or it holds the
// volume with all that belongs on it. Each try finds what the one before has left.
func TestCutFormat(t *testing.T) {
	s := newSupply(t, inMachine(t)[0], smallest)
	f := &formatting{supply: s, folder: t.TempDir()}
	for _, step := range []string{"superblock", "devices", "file system", "content", "header copy", "header"} {
		cut := f.try(func(name string) error {
			if name != step {
				return nil
			}
			return errors.Join(errCut, s.cut())
		}, nil)
		if !cut {
			t.Fatalf("there is no step %q", step)
		}
		if there := f.left("after the step " + step); there != (step == "header copy" || step == "header") {
			t.Errorf("after the step %q there is a volume: %v", step, there)
		}
	}
	// Every fourth power is a write of another kind: the superblock and the journal of
	// dm-integrity, the file system and its tags, what is put onto it, the header.
	cuts := 0
	for writes := uint64(1); f.try(nil, s.cutAfter(writes)); writes *= 4 {
		f.left(fmt.Sprintf("after %d writes", writes))
		cuts++
	}
	if cuts < 3 {
		t.Errorf("the power was cut %d times within formatting", cuts)
	}
	if !f.left("after the last format") {
		t.Error("it was formatted, and there is no volume")
	}
}

// formatting formats a supply whose power is cut.
type formatting struct {
	*supply
	folder string
}

// try formats, with content, and tells whether the power was cut. It leaves nothing open.
func (f *formatting) try(step func(string) error, settle func() bool) (cut bool) {
	f.t.Helper()
	o := f.options()
	o.step = step
	o.Populate = func(_ context.Context, v *Volume) error {
		if err := v.Mount(f.folder); err != nil {
			return err
		}
		if err := store(f.folder, content); err != nil {
			return errors.Join(err, unix.Unmount(f.folder, 0))
		}
		return nil
	}
	v, err := Format(f.t.Context(), o)
	cut = errors.Is(err, errCut)
	if settle != nil {
		cut = settle()
	}
	if err != nil && !cut {
		f.t.Fatal(err)
	}
	// What is left of the machine's state goes with the power.
	_ = unix.Unmount(f.folder, 0)
	if v != nil {
		f.must(v.Close())
	} else {
		f.must(stack{f.mapper}.remove())
	}
	if cut {
		f.restore()
	}
	return cut
}

// left looks at what a try has left, and tells whether it is a volume, which it then
// makes a blank partition again.
func (f *formatting) left(when string) bool {
	f.t.Helper()
	v, _, err := Unlock(f.path, admin)
	if errors.Is(err, ErrBlank) {
		return false
	}
	if err != nil {
		f.t.Fatalf("%s: %v", when, err)
	}
	f.must(v.Mount(f.folder))
	f.check(f.folder)
	f.end(v, f.folder)
	f.must(Erase(f.path))
	return true
}

// A moment of a volume's growth is a step, or so many writes after it.
type moment struct {
	step   string
	writes uint64
}

// moments are those at which TestCutGrow cuts the power. After the step "filled" the file
// system is resized: its journal gets what changes, then its place, then its superblock.
func moments() []moment {
	return []moment{{"zeros", 0}, {"zeros", 5}, {"filled", 0}, {"filled", 1}, {"filled", 2}, {"filled", 8}, {"resized", 0}}
}

// TestCutGrow cuts the power again and again while a volume grows, each time at another
// moment. It must open and mount each time, with what was stored, go on from where it
// was, and have grown in the end.
func TestCutGrow(t *testing.T) {
	s := newSupply(t, inMachine(t)[0], 208*mib)
	v := s.format()
	folder := s.mount(v)
	s.store(folder)
	s.end(v, folder)
	size, resized := int64(0), false
	for n := 0; ; n++ {
		v = s.unlock()
		folder = s.mount(v)
		s.check(folder)
		now := s.fileSystem(v)
		if now < size || resized && now == size {
			t.Fatalf("after cut %d the file system has %d bytes, and had %d", n, now, size)
		}
		size = now
		at := moments()[n%len(moments())]
		if !s.growCut(v, folder, at, size) {
			break
		}
		resized = at.step == "resized"
		_ = unix.Unmount(folder, 0)
		s.must(v.Close())
		s.restore()
		if n > 40 {
			t.Fatal("it doesn't come to an end")
		}
	}
	v.step = nil
	checkGrowth(t, v, folder)
	s.check(folder)
	s.end(v, folder)
}

// fileSystem returns the size in bytes of the file system on a volume.
func (s *supply) fileSystem(v *Volume) int64 {
	s.t.Helper()
	device, err := os.Open(v.device)
	s.must(err)
	size, err := fileSystemSize(device)
	s.must(errors.Join(err, device.Close()))
	return size
}

// growCut grows a volume whose file system has a size, and cuts the power at a moment.
// It returns false where that didn't come any more, and the volume has grown.
func (s *supply) growCut(v *Volume, folder string, at moment, size int64) bool {
	s.t.Helper()
	cut := false
	var settle func() bool
	v.step = func(name string) error {
		if name != at.step || settle != nil {
			return nil
		}
		if at.writes > 0 {
			settle = s.cutAfter(at.writes)
			return nil
		}
		cut = true
		return errors.Join(errCut, s.cut())
	}
	first := int64(-1)
	err := v.Grow(s.t.Context(), folder, func(p Progress) {
		if first < 0 {
			first = p.Filled
		}
	})
	if first != size && first != v.size {
		s.t.Errorf("with a file system of %d bytes, %d bytes count as filled", size, first)
	}
	if settle != nil {
		cut = settle()
	}
	if !cut {
		s.must(err)
		return false
	}
	if err == nil && at.writes == 0 {
		s.t.Fatal("it grew in spite of a cut")
	}
	return true
}

// TestCutUnlock cuts the power ever later while a volume is unlocked that was open when
// its power was cut before, on a partition that has grown meanwhile: what is in the
// journal of dm-integrity goes to its place, and its superblock changes.
func TestCutUnlock(t *testing.T) {
	const more = 8 * mib
	s := newSupply(t, inMachine(t)[0], smallest)
	s.must(s.format().Close())
	v := s.unlock()
	cut := true
	for n := uint64(1); cut; n *= 2 {
		folder := s.mount(v)
		want := bytes.Repeat([]byte{byte(n)}, 100_000)
		s.must(store(folder, want))
		before := v.Size()
		s.must(s.cut())
		_ = unix.Unmount(folder, 0)
		s.must(v.Close())
		s.restore()
		s.resizeTo(int64(s.on.Length)*dm.SectorSize + more)

		settle := s.cutAfter(n)
		opened, _, err := Unlock(s.path, admin)
		if cut = settle(); err != nil && !cut {
			t.Fatal(err)
		}
		if err == nil {
			s.must(opened.Close())
		}
		if cut {
			s.restore()
		}
		v = s.unlock()
		if v.Size() < before+more*8/10 {
			t.Errorf("on a partition that is %d bytes larger it has %d bytes, and had %d", more, v.Size(), before)
		}
		folder = s.mount(v)
		s.checkContent(folder, want)
		s.must(unix.Unmount(folder, 0))
		t.Logf("%d writes: cut %v", n, cut)
	}
	s.must(v.Close())
}
