package logs

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"powercloud.unidatum.com/go/sys/pstore"
	"powercloud.unidatum.com/tests/namespace"
)

// mountSmall returns the folder of a file system of its own, of that size.
func mountSmall(t *testing.T, size string) string {
	t.Helper()
	namespace.Enter(t)
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size="+size); err != nil {
		t.Skip("no file system can be mounted here:", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(disk, unix.MNT_DETACH) })
	return disk
}

// fill fills a disk up with one file, and returns its name.
func fill(t *testing.T, disk string) string {
	t.Helper()
	f, err := os.CreateTemp(disk, "other")
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if closeErr := f.Close(); closeErr != nil || !full(err) {
		t.Fatal(err, closeErr)
	}
	return f.Name()
}

// TestDiskFull has a disk that is smaller than the ring may get, and one that others
// fill up.
func TestDiskFull(t *testing.T) {
	disk := mountSmall(t, "300k")
	folder := filepath.Join(disk, "log")
	r := open(t, folder, "a")
	for i := 0; i < 1000; i += 7 {
		if err := add(r, numbered(t, i, i+7, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	got := texts(t, reader(r, "a"), Options{})
	if len(got) < 100 || !slices.Equal(got[1:], numbers(1002-len(got), 1001)) {
		t.Errorf("%.200q", got)
	}
	if err := copyPanics(r, []pstore.Dump{{Text: strings.Repeat("x\n", 100)}}); err != nil {
		t.Error(err)
	}
	// Others take what there is and what is given up.
	var others []string
	var err error
	for i := 1001; err == nil; i++ {
		others = append(others, fill(t, disk))
		err = add(r, numbered(t, i, i+1, 2000))
	}
	if !full(err) {
		t.Fatal(err)
	}
	for _, name := range others {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := add(r, numbered(t, 5000, 5001, 1)); err != nil {
		t.Fatal(err)
	}
	if got := texts(t, reader(r, "a"), Options{}); got[len(got)-1] != "5000" {
		t.Errorf("%.200q", got)
	}
}

// TestDamage has bytes of a segment changed, and a segment removed by somebody else:
// the rest is read.
func TestDamage(t *testing.T) {
	folder := t.TempDir()
	r := open(t, folder, "a")
	if err := add(r, numbered(t, 0, 200, 1000)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, segmentName(0))
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("\x00\x00\n\x00"), 5000); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	got := texts(t, reader(r, "a"), Options{})
	said := slices.IndexFunc(got, func(s string) bool { return strings.HasSuffix(s, "bytes of the log can't be read") })
	if said < 1 || len(got) != 200 || got[said-1] != strconv.Itoa(said-1) || got[said+1] != strconv.Itoa(said+1) {
		t.Errorf("%q", got)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	got = texts(t, reader(r, "a"), Options{})
	if len(got) < 100 || !strings.HasSuffix(got[0], "bytes of the log can't be read") || got[len(got)-1] != "199" {
		t.Errorf("%q", got)
	}
}
