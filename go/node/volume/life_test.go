package volume

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"powercloud.unidatum.com/go/node/volume/header"
	"powercloud.unidatum.com/go/sys/dm"
)

// TestLife formats, opens, grows and erases a volume, on disks with sectors of both
// sizes.
func TestLife(t *testing.T) {
	for _, disk := range inMachine(t) {
		t.Run(filepath.Base(disk), func(t *testing.T) { testLife(t, disk) })
	}
}

func testLife(t *testing.T, disk string) {
	// Each time the file system grows by two steps, one of them to the end of a group.
	s := newSupply(t, disk, 208*mib)
	s.checkFirst()
	if _, _, err := Unlock(s.path, &header.Key{}); !errors.Is(err, header.ErrWrongKey) {
		t.Errorf("a wrong key: %v", err)
	}
	start := time.Now()
	v := s.unlock()
	t.Logf("opened in %v", time.Since(start))
	folder := s.mount(v)
	s.check(folder)
	checkTable(t, v)
	checkGrowth(t, v, folder)
	s.check(folder)
	s.end(v, folder)

	// The disk is made larger.
	before := v.Size()
	s.resizeTo(320 * mib)
	v = s.unlock()
	folder = s.mount(v)
	if v.Size() < before+105*mib {
		t.Errorf("on a disk that is 112 MiB larger it has %d MiB, and had %d", v.Size()/mib, before/mib)
	}
	checkGrowth(t, v, folder)
	s.check(folder)
	s.must(unix.Unmount(folder, 0))
	unreadable := 0
	eachBlock(t, v.device, s.fileSystem(v), func(block []byte) {
		if block == nil {
			unreadable++
		}
	})
	if unreadable > 0 {
		t.Errorf("in the file system, %d blocks can't be read", unreadable)
	}
	s.must(v.Close())
	s.must(Erase(s.path))
	if _, _, err := Unlock(s.path, admin); !errors.Is(err, ErrBlank) {
		t.Errorf("an erased volume: %v", err)
	}
}

// checkFirst formats a volume, and looks at what can be done while it is open.
func (s *supply) checkFirst() {
	t := s.t
	t.Helper()
	start := time.Now()
	v := s.format()
	t.Logf("formatted in %v", time.Since(start))
	folder := s.mount(v)
	checkMount(t, folder)
	s.store(folder)
	if _, err := Format(t.Context(), s.options()); err == nil {
		t.Error("a volume was formatted")
	}
	if _, _, err := Unlock(s.path, admin); !errors.Is(err, unix.EBUSY) {
		t.Errorf("it was opened while it is mounted: %v", err)
	}
	s.check(folder)
	again, err := Reopen()
	s.must(err)
	if again.device != v.device || again.size != v.size {
		t.Errorf("reopened, it is %+v, not %+v", again, v)
	}
	s.must(again.stack.mapper.Close())
	s.end(v, folder)
	if _, err := Reopen(); !errors.Is(err, dm.ErrNone) {
		t.Errorf("a closed volume: %v", err)
	}
}

// checkMount looks at how a volume is mounted.
func checkMount(t *testing.T, folder string) {
	t.Helper()
	var status unix.Statfs_t
	if err := unix.Statfs(folder, &status); err != nil {
		t.Fatal(err)
	}
	for name, flag := range map[string]int64{"nosuid": unix.ST_NOSUID, "nodev": unix.ST_NODEV, "noexec": unix.ST_NOEXEC} {
		if status.Flags&flag == 0 {
			t.Errorf("it isn't mounted with %s", name)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil || !strings.Contains(string(mounts), "errors=remount-ro") && !strings.Contains(string(mounts), " ext4 ") {
		t.Errorf("the mounts are %s, %v", mounts, err)
	}
}

// checkTable looks for what the table shows of the key.
func checkTable(t *testing.T, v *Volume) {
	t.Helper()
	table, err := v.stack.mapper.Table(cryptName)
	if err != nil || len(table) != 1 {
		t.Fatalf("%+v, %v", table, err)
	}
	if want := cipher + " :96:logon:powercloud:" + owner.Volume.String() + " 0 "; !strings.HasPrefix(table[0].Parameters, want) ||
		!strings.HasSuffix(table[0].Parameters, " integrity:32:aead sector_size:4096") {
		t.Errorf("the table is %q", table[0].Parameters)
	}
}

// checkGrowth grows a volume and looks at what is reported.
func checkGrowth(t *testing.T, v *Volume, folder string) {
	t.Helper()
	last, start := Progress{}, time.Now()
	first := int64(-1)
	if err := v.Grow(t.Context(), folder, func(p Progress) {
		if p.Filled < last.Filled || p.Filled > p.Total || p.Total != v.Size() {
			t.Errorf("%+v after %+v", p, last)
		}
		if first < 0 {
			first = p.Filled
		}
		last = p
	}); err != nil {
		t.Fatal(err)
	}
	t.Logf("filled %d MiB in %v", (last.Filled-first)/mib, time.Since(start))
	space, err := v.Space(folder)
	// Tables of inodes, the journal, and what can't be a group.
	if err != nil || last.Filled != v.Size() || space.Size != v.Size() || space.Free < v.Size()*95/100-40*mib {
		t.Errorf("%+v, %+v, %v", last, space, err)
	}
	if err := v.Grow(t.Context(), folder, func(p Progress) {
		if p.Filled != p.Total {
			t.Errorf("it grows again: %+v", p)
		}
	}); err != nil {
		t.Error(err)
	}
}
