package kernellog

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text string
		want Record
	}{
		{"5,0,0,-;Linux version 6.1\n", Record{Priority: 5, Text: "Linux version 6.1"}},
		{"31,17,1500000,-;pcd: level=INFO msg=x\n", Record{Priority: Debug, Facility: 3, Sequence: 17, Uptime: 1500 * time.Millisecond, Text: "pcd: level=INFO msg=x"}},
		{"6,339,5140900,c,caller=T1;NET: a;b\n SUBSYSTEM=net\n DEVICE=n1\n", Record{Priority: Info, Sequence: 339, Uptime: 5140900 * time.Microsecond, Text: "NET: a;b"}},
		{`3,1,2,-;a\x0ab\x5cc\x1b[2J\xc3\xa9\xzz\x1`, Record{Priority: Error, Sequence: 1, Uptime: 2 * time.Microsecond, Text: "a\nb\\c\x1b[2Jé\\xzz\\x1"}},
		{"6,1,1,-;\n", Record{Priority: Info, Sequence: 1, Uptime: time.Microsecond}},
	} {
		if got, err := Parse([]byte(c.text)); got != c.want || err != nil {
			t.Errorf("%q: %+v, %v", c.text, got, err)
		}
	}
	for _, text := range []string{
		"", "6,1,1,-", "6,1,1;x", "x,1,1,-;x", "-1,1,1,-;x", "70000,1,1,-;x", "6,,1,-;x", "6,18446744073709551616,1,-;x",
		"6,1,x,-;x", "6,1,9223372036854776,-;x",
	} {
		if got, err := Parse([]byte(text)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q was taken for %+v, %v", text, got, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("5,0,0,-;Linux version 6.1\n"))
	f.Add([]byte("31,17,1500000,-;pcd: a\\x0ab\n KEY=value\n"))
	f.Add([]byte("6,1,9223372036854775,c,caller=T1;\\x5c\\x"))
	f.Add([]byte(";,,,"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Parse(b)
		if err != nil {
			if !errors.Is(err, ErrMalformed) || r != (Record{}) {
				t.Fatalf("%+v, %v", r, err)
			}
			return
		}
		if r.Priority > Debug || r.Uptime < 0 || len(r.Text) > len(b) {
			t.Fatalf("%+v", r)
		}
		// What the kernel would make of it is read the same.
		var text strings.Builder
		for _, c := range []byte(r.Text) {
			fmt.Fprintf(&text, `\x%02x`, c)
		}
		again, err := Parse(fmt.Appendf(nil, "%d,%d,%d,-;%s\n", r.Facility<<3|uint(r.Priority), r.Sequence, r.Uptime.Microseconds(), text.String()))
		if err != nil || again != r {
			t.Fatalf("%+v became %+v, %v", r, again, err)
		}
	})
}

// device gives what it has, one a call: a record or an error.
type device struct {
	reads []any
	until time.Time
}

func (d *device) Read(b []byte) (int, error) {
	if len(d.reads) == 0 {
		return 0, os.ErrDeadlineExceeded
	}
	next := d.reads[0]
	d.reads = d.reads[1:]
	if err, failed := next.(error); failed {
		return 0, &os.PathError{Op: "read", Path: Path, Err: err}
	}
	return copy(b, next.(string)), nil
}

func (d *device) SetReadDeadline(t time.Time) error {
	d.until = t
	return nil
}

func (d *device) Close() error { return nil }

func TestReaderGoesOn(t *testing.T) {
	d := &device{reads: []any{"6,1,1,-;a", unix.EPIPE, unix.EPIPE, "6,9,1,-;b", "garbage", "6,11,1,-;c"}}
	r := NewReader(d)
	var got []string
	for {
		record, err := r.Next()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		got = append(got, fmt.Sprint(record.Sequence, record.Text, " ", errors.Is(err, ErrMalformed)))
	}
	if want := "[1a false 9b false 0 true 11c false]"; fmt.Sprint(got) != want {
		t.Errorf("%q", got)
	}
	d.reads = []any{unix.EIO}
	if _, err := r.Next(); !errors.Is(err, unix.EIO) {
		t.Error(err)
	}
	now := time.Now()
	if err := errors.Join(r.SetDeadline(now), r.Close()); err != nil || d.until != now {
		t.Errorf("the deadline is %v, %v", d.until, err)
	}
}

// TestThisMachinesLog reads the kernel's log where this process may, and doesn't wait
// at its end for longer than it should.
func TestThisMachinesLog(t *testing.T) {
	r, err := OpenReader(Path)
	if err != nil {
		t.Skip("the kernel's log can't be read here:", err)
	}
	defer func() { _ = r.Close() }()
	if err := r.SetDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	for records := 0; ; records++ {
		_, err := r.Next()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Logf("%d records", records)
			return
		}
		if err != nil && !errors.Is(err, ErrMalformed) {
			t.Fatal(err)
		}
	}
}

func TestNoLog(t *testing.T) {
	if _, err := OpenReader("/nonexistent"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
