package volume

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

var errCut = errors.New("the power is cut")

// TestCutFormat cuts the power at every step of formatting, and in the middle of
// writing the file system. Then the partition is blank, and can be formatted, or holds
// the volume.
func TestCutFormat(t *testing.T) {
	s := newSupply(t, inMachine(t)[0], 192*mib)
	for n := 0; ; n++ {
		s.wipe()
		o, count := s.options(), 0
		o.step = func(string) error {
			if count == n {
				return errors.Join(errCut, s.cut())
			}
			count++
			return nil
		}
		if n >= 3 {
			o.step = nil
			content, err := io.ReadAll(o.Template)
			s.must(err)
			o.Template = &cutter{reader: bytes.NewReader(content), supply: s, after: n - 3, piece: len(content)/pieces + 1}
		}
		v, err := Format(t.Context(), o)
		if err == nil {
			s.must(v.Close())
			if n < 4 {
				t.Errorf("the power was cut %d times", n)
			}
			return
		}
		s.restore()
		v, _, err = Unlock(s.path, admin)
		if errors.Is(err, ErrBlank) {
			if n == 2 {
				t.Error("the header was written, and the partition is blank")
			}
			v = s.format()
		} else if err != nil {
			t.Fatalf("cut %d: %v", n, err)
		}
		folder := s.mount(v)
		s.store(folder)
		s.check(folder)
		s.end(v, folder)
	}
}

// pieces is in how many pieces a cutter reads a template.
const pieces = 3

// cutter cuts the power while a template is read.
type cutter struct {
	reader io.Reader
	supply *supply
	after  int
	piece  int
}

func (c *cutter) Read(b []byte) (int, error) {
	if c.after == 0 {
		c.supply.must(c.supply.cut())
	}
	c.after--
	return c.reader.Read(b[:min(len(b), c.piece)])
}

// TestCutGrow cuts the power again and again while a volume grows, each time at another
// kind of step, in the middle of filling too. It must open and mount each time, with
// what was stored, and have grown in the end.
func TestCutGrow(t *testing.T) {
	s := newSupply(t, inMachine(t)[0], 448*mib)
	v := s.format()
	folder := s.mount(v)
	s.store(folder)
	s.end(v, folder)
	size := int64(0)
	kinds := []string{"zeros", "filled", "resized", "during"}
	for n := 0; ; n++ {
		v = s.unlock()
		folder = s.mount(v)
		s.check(folder)
		device, err := os.Open(v.device)
		s.must(err)
		now, err := fileSystemSize(device)
		s.must(errors.Join(err, device.Close()))
		if now < size {
			t.Fatalf("after cut %d the file system has %d bytes, and had %d", n, now, size)
		}
		size = now
		if !s.growCut(v, folder, kinds[n%len(kinds)], size) {
			break
		}
		// What is left of the machine's state goes with the power.
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

// growCut grows a volume from a size on and cuts the power at the first step of a kind.
// It returns false where there was none, and the volume has grown.
func (s *supply) growCut(v *Volume, folder, kind string, size int64) bool {
	s.t.Helper()
	cut, done := false, make(chan error, 1)
	v.step = func(name string) error {
		if name != kind || cut {
			return nil
		}
		cut = true
		return errors.Join(errCut, s.cut())
	}
	err := v.Grow(s.t.Context(), folder, func(p Progress) {
		if kind == "during" && !cut && p.Filled > size+16*mib && p.Filled < p.Total {
			cut = true
			go func() { done <- s.cut() }()
		}
	})
	if !cut {
		s.must(err)
		return false
	}
	if kind == "during" {
		s.must(<-done)
	} else if err == nil {
		s.t.Fatal("it grew in spite of a cut")
	}
	return true
}
