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
	"time"
	"unsafe"

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
	s.replace(s.on)
}

// cut cuts the power.
func (s *supply) cut() {
	s.t.Helper()
	s.replace(dm.Target{Length: s.on.Length, Type: "error"})
}

// restore switches the power on again. What the kernel held in memory is gone, as it
// is after a boot.
func (s *supply) restore() {
	s.t.Helper()
	file, err := os.Open(s.path)
	s.must(err)
	s.must(unix.IoctlSetInt(int(file.Fd()), unix.BLKFLSBUF, 0))
	s.must(file.Close())
	s.replace(s.on)
}

func (s *supply) replace(table dm.Target) {
	s.t.Helper()
	s.must(s.mapper.Load(s.name, table))
	s.must(s.mapper.Interrupt(s.name))
	_, err := s.mapper.Resume(s.name)
	s.must(err)
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

func (s *supply) store(folder string) {
	s.t.Helper()
	file, err := os.Create(filepath.Join(folder, "file"))
	s.must(err)
	_, err = file.Write(content)
	s.must(errors.Join(err, file.Sync(), file.Close()))
	opened, err := os.Open(folder)
	s.must(err)
	s.must(errors.Join(opened.Sync(), opened.Close()))
}

func (s *supply) check(folder string) {
	s.t.Helper()
	if got, err := os.ReadFile(filepath.Join(folder, "file")); err != nil || !bytes.Equal(got, content) {
		s.t.Errorf("the file has %d bytes, %v", len(got), err)
	}
}

// readAll reads a device from its beginning in blocks, past the kernel's cache. A block
// that can't be read is nil.
func readAll(t *testing.T, path string, size int64) [][]byte {
	t.Helper()
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECT|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	// A mapping is aligned as direct reads must be.
	buffer, err := unix.Mmap(-1, 0, pieceSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(buffer) }()
	var blocks [][]byte
	for at := int64(0); at < size; at += pieceSize {
		length := min(size-at, pieceSize)
		whole, err := unix.Pread(fd, buffer[:length], at)
		for part := int64(0); part < length; part += blockSize {
			block := buffer[part : part+blockSize]
			if err != nil || int64(whole) != length {
				n, err := unix.Pread(fd, block, at+part)
				if err != nil {
					if !errors.Is(err, unix.EIO) && !errors.Is(err, unix.EILSEQ) {
						t.Fatalf("read at %d: %v", at+part, err)
					}
					block = nil
				} else if n != blockSize {
					t.Fatalf("read at %d: %d bytes", at+part, n)
				}
			}
			blocks = append(blocks, bytes.Clone(block))
		}
	}
	return blocks
}

// TestLife formats, opens, grows and erases a volume, on disks with sectors of both
// sizes.
func TestLife(t *testing.T) {
	for _, disk := range inMachine(t) {
		t.Run(filepath.Base(disk), func(t *testing.T) { testLife(t, disk) })
	}
}

func testLife(t *testing.T, disk string) {
	s := newSupply(t, disk, 320*mib)
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
	if _, _, err := Unlock(s.path, &header.Key{}); !errors.Is(err, header.ErrWrongKey) {
		t.Errorf("a wrong key: %v", err)
	}
	start = time.Now()
	v = s.unlock()
	t.Logf("opened in %v", time.Since(start))
	folder = s.mount(v)
	s.check(folder)
	checkTable(t, v)
	checkGrowth(t, v, folder)
	s.check(folder)
	s.end(v, folder)

	// The disk is made larger.
	before := v.Size()
	s.resizeTo(512 * mib)
	v = s.unlock()
	folder = s.mount(v)
	if v.Size() < before+180*mib {
		t.Errorf("on a disk that is 192 MiB larger it has %d MiB, and had %d", v.Size()/mib, before/mib)
	}
	checkGrowth(t, v, folder)
	s.check(folder)
	s.must(unix.Unmount(folder, 0))
	for i, block := range readAll(t, v.device, v.Size()/groupSize*groupSize) {
		if block == nil {
			t.Fatalf("the block %d can't be read", i)
		}
	}
	s.must(v.Close())
	s.must(Erase(s.path))
	if _, _, err := Unlock(s.path, admin); !errors.Is(err, ErrBlank) {
		t.Errorf("an erased volume: %v", err)
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

// TestForeign finds something else on the partition.
func TestForeign(t *testing.T) {
	s := newSupply(t, inMachine(t)[0], 192*mib)
	file, err := os.OpenFile(s.path, os.O_RDWR, 0)
	s.must(err)
	_, err = file.WriteAt([]byte{1}, header.Area-1)
	s.must(errors.Join(err, file.Close()))
	if _, err := Format(t.Context(), s.options()); !errors.Is(err, ErrForeign) {
		t.Errorf("%v", err)
	}
	if devices, err := Reopen(); err == nil {
		t.Errorf("there is %+v", devices)
	}
}

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
				s.cut()
				return errCut
			}
			count++
			return nil
		}
		if n >= 3 {
			o.step = nil
			o.Template = &cutter{reader: o.Template, supply: s, after: n - 3}
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

// cutter cuts the power while a template is read.
type cutter struct {
	reader io.Reader
	supply *supply
	after  int
}

func (c *cutter) Read(b []byte) (int, error) {
	if c.after == 0 {
		c.supply.cut()
	}
	c.after--
	return c.reader.Read(b[:min(len(b), 1500)])
}

// TestCutGrow cuts the power again and again while a volume grows. It must open and
// mount each time, with what was stored, and have grown in the end.
func TestCutGrow(t *testing.T) {
	s := newSupply(t, inMachine(t)[0], 448*mib)
	v := s.format()
	folder := s.mount(v)
	s.store(folder)
	s.end(v, folder)
	size := int64(0)
	// Each time a kind of step later, in the middle of filling too.
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
		cuts, kinds := 0, []string{"zeros", "filled", "resized", "during"}
		kind := kinds[n%len(kinds)]
		done := make(chan struct{})
		v.step = func(name string) error {
			if name == kind && cuts == 0 {
				cuts++
				s.cut()
				return errCut
			}
			return nil
		}
		err = v.Grow(t.Context(), folder, func(p Progress) {
			if kind == "during" && cuts == 0 && p.Filled > size+16*mib && p.Filled < p.Total {
				cuts++
				go func() {
					s.cut()
					close(done)
				}()
			}
		})
		if cuts == 0 {
			s.must(err)
			break
		}
		if kind == "during" {
			<-done
		}
		if err == nil && kind != "during" {
			t.Fatal("it grew in spite of a cut")
		}
		// What is left of the machine's state goes with the power.
		_ = unix.Unmount(folder, 0)
		s.must(v.Close())
		s.restore()
		if n > 40 {
			t.Fatal("it doesn't come to an end")
		}
	}
	checkGrowth(t, v, folder)
	s.check(folder)
	s.end(v, folder)
}

// TestFlips flips a bit in every region of a partition: the header's copies, the
// superblock and the journal of dm-integrity, tags, and sectors. Every block must then
// read as it was or be an error, never as something else.
func TestFlips(t *testing.T) {
	s := newSupply(t, inMachine(t)[0], 144*mib)
	v := s.format()
	folder := s.mount(v)
	s.store(folder)
	s.must(unix.Unmount(folder, 0))
	const used = 64 * mib
	want := readAll(t, v.device, used)
	for i, block := range want {
		if block == nil {
			t.Fatalf("the block %d can't be read", i)
		}
	}
	s.must(v.Close())
	offsets := []int64{0, 30, 200, header.Area / 2, header.Area/2 + 40, header.Area / 4}
	for _, inSuperblock := range []int64{0, 8, 9, 10, 12, 16, 24, 28, 100, 4000} {
		offsets = append(offsets, header.Area+inSuperblock)
	}
	// The journal takes a 128th of the partition, and the tags follow it.
	for at := int64(4096); at < 2*mib; at += 97_000 {
		offsets = append(offsets, header.Area+at)
	}
	for at := int64(3 * mib); at < used; at += 7_654_321 {
		offsets = append(offsets, at)
	}
	// What the kernel writes when it takes one superblock for another doesn't come
	// right by itself.
	s.copyPartition(s.path, 0, s.disk, spare)
	outcomes := map[string]int{}
	for _, offset := range offsets {
		outcome := s.flip(offset, want)
		if outcome == "many blocks" || outcome == "doesn't open" {
			s.copyPartition(s.disk, spare, s.path, 0)
		}
		outcomes[outcome]++
	}
	t.Logf("%d flips: %v", len(offsets), outcomes)
	if outcomes["1 block"] < 6 || outcomes["unnoticed"] == 0 {
		t.Errorf("the outcomes are %v", outcomes)
	}
	v = s.unlock()
	folder = s.mount(v)
	s.check(folder)
	s.end(v, folder)
}

// spare is where on the disk there is room for a copy of the partition, in bytes.
const spare = 320 * mib

// copyPartition copies as many bytes as the partition has.
func (s *supply) copyPartition(from string, fromOffset int64, to string, toOffset int64) {
	s.t.Helper()
	source, err := os.Open(from)
	s.must(err)
	target, err := os.OpenFile(to, os.O_WRONLY, 0)
	s.must(err)
	size := int64(s.on.Length) * dm.SectorSize
	n, err := io.Copy(io.NewOffsetWriter(target, toOffset), io.NewSectionReader(source, fromOffset, size))
	if n != size {
		s.t.Errorf("%d bytes were copied", n)
	}
	s.must(errors.Join(err, target.Sync(), target.Close(), source.Close()))
}

// flip flips a bit, looks at the volume, and puts back what was there. It returns what
// came of it.
func (s *supply) flip(offset int64, want [][]byte) string {
	s.t.Helper()
	place := offset / blockSize * blockSize
	saved := s.exchange(place, func(block []byte) { block[offset-place] ^= 0x10 })
	defer s.exchange(place, func(block []byte) { copy(block, saved) })
	v, _, err := Unlock(s.path, admin)
	if err != nil {
		return "doesn't open"
	}
	defer func() { s.must(v.Close()) }()
	unreadable := 0
	for i, block := range readAll(s.t, v.device, int64(len(want))*blockSize) {
		if block == nil {
			unreadable++
		} else if !bytes.Equal(block, want[i]) {
			s.t.Errorf("a bit flipped at %d has changed the block %d", offset, i)
		}
	}
	switch unreadable {
	case 0:
		return "unnoticed"
	case 1:
		return "1 block"
	}
	return "many blocks"
}

// exchange changes a block of the partition and returns what it was.
func (s *supply) exchange(place int64, change func([]byte)) []byte {
	s.t.Helper()
	file, err := os.OpenFile(s.path, os.O_RDWR|unix.O_SYNC, 0)
	s.must(err)
	block := make([]byte, blockSize)
	_, err = file.ReadAt(block, place)
	s.must(err)
	before := bytes.Clone(block)
	change(block)
	_, err = file.WriteAt(block, place)
	s.must(errors.Join(err, file.Close()))
	return before
}

// TestReadError has a program read a file of which a sector was changed.
func TestReadError(t *testing.T) {
	s := newSupply(t, inMachine(t)[0], 144*mib)
	v := s.format()
	folder := s.mount(v)
	s.store(folder)
	name := filepath.Join(folder, "file")
	file, err := os.Open(name)
	s.must(err)
	const (
		third  = 2
		fibmap = 1 // FIBMAP (Linux, include/uapi/linux/fs.h)
	)
	block := int32(third) // In the file, and then in the file system.
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, file.Fd(), fibmap, uintptr(unsafe.Pointer(&block))); errno != 0 {
		t.Fatal(errno)
	}
	s.must(file.Close())
	s.must(unix.Unmount(folder, 0))
	// Below dm-crypt, past the tag.
	device, err := s.mapper.Device(integrityName)
	s.must(err)
	file, err = os.OpenFile(device.Path, os.O_RDWR, 0)
	s.must(err)
	_, err = file.WriteAt(make([]byte, blockSize), int64(block)*blockSize)
	s.must(errors.Join(err, file.Sync(), file.Close()))
	s.must(v.Mount(folder))
	file, err = os.Open(name)
	s.must(err)
	got := make([]byte, blockSize)
	if n, err := file.ReadAt(got, third*blockSize); !errors.Is(err, unix.EIO) {
		t.Errorf("%d bytes, %v", n, err)
	}
	if n, err := file.ReadAt(got, 0); err != nil || !bytes.Equal(got, content[:blockSize]) {
		t.Errorf("of the first block %d bytes, %v", n, err)
	}
	s.must(file.Close())
	s.end(v, folder)
}

// zeroOut fills a part of a device with zeros.
func zeroOut(file *os.File, from, size int64) error {
	v := &Volume{size: from + size}
	return v.fill(context.Background(), file, from, from+size, func(Progress) {})
}

// TestHeaderCopies damages the copies of the header in turn, and both.
func TestHeaderCopies(t *testing.T) {
	s := newSupply(t, inMachine(t)[0], 144*mib)
	s.must(s.format().Close())
	for _, place := range []int64{0, header.Area / 2} {
		s.exchange(place, func(block []byte) { copy(block, make([]byte, 100)) })
		if copies, err := Look(s.path); err != nil || len(copies) != 1 {
			t.Errorf("%d copies, %v", len(copies), err)
		}
		s.must(s.unlock().Close())
		if copies, err := Look(s.path); err != nil || len(copies) != 2 {
			t.Errorf("after a start there are %d copies, %v", len(copies), err)
		}
	}
	for _, place := range []int64{0, header.Area / 2} {
		s.exchange(place, func(block []byte) { block[50] ^= 1 })
	}
	if _, _, err := Unlock(s.path, admin); !errors.Is(err, header.ErrHeader) {
		t.Errorf("both are damaged: %v", err)
	}
	if _, err := Format(t.Context(), s.options()); !errors.Is(err, header.ErrHeader) {
		t.Errorf("both are damaged, and it is formatted: %v", err)
	}
}

// TestForged puts another volume's sectors under this volume's header: none can be
// read.
func TestForged(t *testing.T) {
	s := newSupply(t, inMachine(t)[0], 144*mib)
	s.must(s.format().Close())
	file, err := os.OpenFile(s.path, os.O_RDWR, 0)
	s.must(err)
	area := make([]byte, header.Area)
	_, err = file.ReadAt(area, 0)
	s.must(errors.Join(err, file.Close()))
	s.must(Erase(s.path))
	s.must(s.format().Close())
	file, err = os.OpenFile(s.path, os.O_RDWR, 0)
	s.must(err)
	_, err = file.WriteAt(area, 0)
	s.must(errors.Join(err, file.Sync(), file.Close()))
	v := s.unlock()
	for i, block := range readAll(t, v.device, 8*mib) {
		if block != nil {
			t.Fatalf("the block %d was read with another key", i)
		}
	}
	if err := v.Mount(t.TempDir()); err == nil {
		t.Error("it was mounted with another key")
	}
	s.must(v.Close())
}

// TestSpeed compares the volume with the bare disk, in one run.
func TestSpeed(t *testing.T) {
	s := newSupply(t, inMachine(t)[0], 448*mib)
	bare := measure(t, s.path, 64*mib, 32*mib)
	s.wipe()
	v := s.format()
	defer func() { s.must(v.Close()) }()
	t.Logf("the bare disk: %s; the volume: %s", bare, measure(t, v.device, 64*mib, 32*mib))
}

// measure writes and reads a part of a device directly, and says how fast that was.
func measure(t *testing.T, path string, from, size int64) string {
	t.Helper()
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_DIRECT|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	buffer, err := unix.Mmap(-1, 0, pieceSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(buffer) }()
	speed := func(transfer func(int, []byte, int64) (int, error)) string {
		start := time.Now()
		for at := from; at < from+size; at += pieceSize {
			if n, err := transfer(fd, buffer, at); err != nil || n != len(buffer) {
				t.Fatalf("at %d: %d bytes, %v", at, n, err)
			}
		}
		if err := unix.Fsync(fd); err != nil {
			t.Fatal(err)
		}
		return strconv.FormatFloat(float64(size)/mib/time.Since(start).Seconds(), 'f', 1, 64)
	}
	written := speed(unix.Pwrite)
	return fmt.Sprintf("%s MiB/s written, %s MiB/s read", written, speed(unix.Pread))
}
