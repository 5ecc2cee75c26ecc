package volume

import (
	"bytes"
	"errors"
	"testing"

	"powercloud.unidatum.com/go/node/volume/header"
	"powercloud.unidatum.com/go/sys/dm"
)

// TestHeaderCopies damages the copies of the header in turn, and both: with one the
// volume opens and has two again, with none nothing is opened or formatted.
func TestHeaderCopies(t *testing.T) {
	s := newSupply(t, inMachine(t)[0], smallest)
	v := s.format()
	folder := s.mount(v)
	s.store(folder)
	s.end(v, folder)
	for _, place := range []int64{0, header.Area / 2} {
		s.write(place, make([]byte, blockSize))
		if copies, err := Look(s.path); err != nil || len(copies) != 1 {
			t.Errorf("%d copies, %v", len(copies), err)
		}
		v = s.unlock()
		folder = s.mount(v)
		s.check(folder)
		s.end(v, folder)
		if copies, err := Look(s.path); err != nil || len(copies) != 2 || v.Unrepaired != nil {
			t.Errorf("after a start there are %d copies, %v, %v", len(copies), err, v.Unrepaired)
		}
	}
	for _, place := range []int64{0, header.Area / 2} {
		s.flip(place + 50)
	}
	s.checkRefused("both are damaged", header.ErrHeader)
	for _, place := range []int64{0, header.Area / 2} {
		s.flip(place)
	}
	s.checkRefused("neither begins as a header", ErrForeign)
	was := s.read(0, kept)
	if wiped, err := Wipe(s.path); wiped || !errors.Is(err, ErrHeaderless) {
		t.Errorf("wiping it: %v, %v", wiped, err)
	}
	s.checkSame("it was to be wiped", was)
}

// checkRefused expects that a partition is neither unlocked nor formatted, nor written
// to.
func (s *supply) checkRefused(what string, want error) {
	s.t.Helper()
	was := s.read(0, kept)
	if _, _, err := Unlock(s.path, admin); !errors.Is(err, want) {
		s.t.Errorf("%s, and it is unlocked: %v", what, err)
	}
	if _, err := Format(s.t.Context(), s.options()); !errors.Is(err, want) {
		s.t.Errorf("%s, and it is formatted: %v", what, err)
	}
	if _, err := Reopen(); !errors.Is(err, dm.ErrNone) {
		s.t.Errorf("%s, and there is a volume: %v", what, err)
	}
	s.checkSame(what, was)
}

// checkSame compares the beginning of the partition with what it was.
func (s *supply) checkSame(what string, was []byte) {
	s.t.Helper()
	if !bytes.Equal(s.read(0, int64(len(was))), was) {
		s.t.Errorf("%s, and something was written", what)
	}
}

// TestUnreadableHeader has a disk that neither reads nor writes one copy of the header,
// or both.
func TestUnreadableHeader(t *testing.T) {
	s := newSupply(t, inMachine(t)[0], smallest)
	v := s.format()
	folder := s.mount(v)
	s.store(folder)
	s.end(v, folder)
	for _, place := range []int64{0, header.Area / 2} {
		s.breakAt(place, place+blockSize)
		v = s.unlock()
		if v.Unrepaired == nil {
			t.Errorf("without the copy at %d nobody is told", place)
		}
		folder = s.mount(v)
		s.check(folder)
		s.end(v, folder)
	}
	s.breakAt(0, header.Area)
	_, _, err := Unlock(s.path, admin)
	_, formatErr := Format(t.Context(), s.options())
	for _, err := range []error{err, formatErr} {
		if err == nil || errors.Is(err, ErrBlank) || errors.Is(err, ErrForeign) {
			t.Errorf("without a header: %v", err)
		}
	}
	s.must(s.replace(s.on))
	s.must(s.unlock().Close())
}

// TestForgedHeader makes a header of the volume say that it is somebody else's, with a
// checksum that fits.
func TestForgedHeader(t *testing.T) {
	s := newSupply(t, inMachine(t)[0], smallest)
	s.must(s.format().Close())
	copies, err := Look(s.path)
	s.must(err)
	forged := *copies[0]
	forged.Owner.Name = "colo-1"
	s.must(writeHeader(s.path, &forged))
	was := s.read(0, kept)
	if _, _, err := Unlock(s.path, admin); !errors.Is(err, header.ErrHeader) {
		t.Errorf("a forged header: %v", err)
	}
	if _, err := Reopen(); !errors.Is(err, dm.ErrNone) {
		t.Errorf("with a forged header there is a volume: %v", err)
	}
	s.checkSame("it is forged", was)
	// One copy that is authentic suffices.
	s.write(header.Area/2, copies[1].Marshal())
	s.must(s.unlock().Close())
}

// TestForged puts another volume's sectors under this volume's header: none can be
// read.
func TestForged(t *testing.T) {
	s := newSupply(t, inMachine(t)[0], smallest)
	s.must(s.format().Close())
	area := s.read(0, header.Area)
	s.must(Erase(s.path))
	s.must(s.format().Close())
	s.write(0, area)
	v := s.unlock()
	for i, block := range readAll(t, v.device, 4*mib) {
		if block != nil {
			t.Fatalf("the block %d was read with another key", i)
		}
	}
	if err := v.Mount(t.TempDir()); err == nil {
		t.Error("it was mounted with another key")
	}
	s.must(v.Close())
}

// TestForeign finds something else on the partition, in any place of its first MiB.
func TestForeign(t *testing.T) {
	s := newSupply(t, inMachine(t)[0], smallest)
	for _, at := range []int64{0, 512, header.Area / 2, header.Area - 1} {
		s.write(at, []byte{1})
		s.checkRefused("it is foreign", ErrForeign)
		s.write(at, []byte{0})
	}
}
