package volume

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"powercloud.unidatum.com/go/node/volume/header"
)

// readAll reads a device from its beginning in blocks. A block that can't be read is nil.
func readAll(t *testing.T, path string, size int64) (blocks [][]byte) {
	t.Helper()
	eachBlock(t, path, size, func(block []byte) { blocks = append(blocks, bytes.Clone(block)) })
	return blocks
}

// eachBlock reads a device from its beginning in blocks, past the kernel's cache, and has
// a function look at each in turn. A block that can't be read is nil.
func eachBlock(t *testing.T, path string, size int64, look func(block []byte)) {
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
			look(block)
		}
	}
}

// layout is where on a partition dm-integrity has things, in bytes (Linux,
// drivers/md/dm-integrity.c).
type layout struct {
	// journal and tags are where the journal begins, and the first area of tags after it.
	journal, tags int64
}

const (
	// runBlocks is how many blocks there are between two areas of tags.
	runBlocks = runSize * 512 / blockSize
	tagsSize  = runBlocks * tagSize
	// sectionSize is that of a section of the journal: 32 blocks, and before them, in 8
	// sectors, for each the number of its first sector, its tag, and more. The last 8
	// bytes of every sector mark what is whole.
	sectionSize = (32*8 + 8) * 512
)

// layout reads the superblock of dm-integrity.
func (s *supply) layout() layout {
	s.t.Helper()
	const sectionsOffset = 12
	sections := int64(binary.LittleEndian.Uint32(s.read(header.Area, blockSize)[sectionsOffset:]))
	begin := int64(header.Area + blockSize)
	return layout{begin, begin + sections*sectionSize}
}

// tag and data return where a block's tag and its content are.
func (l layout) tag(block int64) int64 {
	return l.tags + block/runBlocks*(tagsSize+runBlocks*blockSize) + block%runBlocks*tagSize
}

func (l layout) data(block int64) int64 {
	return l.tags + (block/runBlocks+1)*tagsSize + block*blockSize
}

// read reads a part of the partition, whose volume must be closed.
func (s *supply) read(from, size int64) []byte {
	s.t.Helper()
	file, err := os.Open(s.path)
	s.must(err)
	content := make([]byte, size)
	_, err = file.ReadAt(content, from)
	s.must(errors.Join(err, file.Close()))
	return content
}

// write writes a part of the partition, whose volume must be closed.
func (s *supply) write(at int64, content []byte) {
	s.t.Helper()
	file, err := os.OpenFile(s.path, os.O_RDWR, 0)
	s.must(err)
	_, err = file.WriteAt(content, at)
	s.must(errors.Join(err, file.Sync(), file.Close()))
}

// flip flips a bit of the partition.
func (s *supply) flip(at int64) {
	s.t.Helper()
	place := at / blockSize * blockSize
	block := s.read(place, blockSize)
	block[at-place] ^= 0x10
	s.write(place, block)
}

const (
	// seen is how much of a volume is looked at after a bit was flipped. It has blocks of
	// two runs, and more would take longer.
	seen = 20 * mib
	// kept is how much of the partition may have changed then.
	kept = 25 * mib
)

// damage flips bits of a partition, and looks at what comes of it.
type damage struct {
	*supply
	// sound is what the beginning of the partition is, and content what the volume has.
	sound   []byte
	content [][]byte
	layout  layout
}

// newDamage makes a volume, and closes it.
func newDamage(t *testing.T) *damage {
	t.Helper()
	s := newSupply(t, inMachine(t)[0], smallest)
	v := s.format()
	folder := s.mount(v)
	s.store(folder)
	s.must(unix.Unmount(folder, 0))
	d := &damage{supply: s, content: readAll(t, v.device, seen)}
	if slices.ContainsFunc(d.content, func(block []byte) bool { return block == nil }) {
		t.Fatal("there are blocks that can't be read")
	}
	s.must(v.Close())
	d.sound, d.layout = s.read(0, kept), s.layout()
	return d
}

// outcome is what a volume has after a bit was flipped.
type outcome struct {
	opened bool
	// unreadable are the blocks that can't be read, and older those that are as they were
	// before they were written last.
	unreadable, older []int64
}

// look unlocks the volume and compares it. newer are the blocks, from one on, that were
// written last, and may not be there. Then it puts all back as it was.
func (d *damage) look(where string, first int64, newer [][]byte) outcome {
	d.t.Helper()
	defer d.write(0, d.sound)
	v, _, err := Unlock(d.path, admin)
	if err != nil {
		return outcome{}
	}
	defer func() { d.must(v.Close()) }()
	o := outcome{opened: true}
	for i, block := range readAll(d.t, v.device, seen) {
		at := int64(i)
		written := at >= first && at < first+int64(len(newer))
		switch {
		case block == nil:
			o.unreadable = append(o.unreadable, at)
		case written && bytes.Equal(block, newer[at-first]):
		case written && bytes.Equal(block, d.content[i]):
			o.older = append(o.older, at)
		case !bytes.Equal(block, d.content[i]):
			d.t.Errorf("%s: the block %d has changed", where, i)
		}
	}
	return o
}

// TestFlipHeader flips a bit in what belongs to the header: neither the volume nor what
// is on it is different, and a copy that was damaged is repaired.
func TestFlipHeader(t *testing.T) {
	d := newDamage(t)
	for _, at := range []int64{0, 9, 30, 200, header.Area / 4, header.Area / 2, header.Area/2 + 40} {
		d.flip(at)
		d.must(d.unlock().Close())
		// Nobody reads what is between the copies.
		if found := d.read(0, header.Area); at != header.Area/4 && !bytes.Equal(found, d.sound[:header.Area]) {
			t.Errorf("a bit flipped at %d was not repaired", at)
		}
		d.write(0, d.sound[:header.Area])
	}
	if o := d.look("the header", 0, nil); !o.opened || o.unreadable != nil {
		t.Errorf("%+v", o)
	}
}

// TestFlipSuperblock flips a bit in each field of dm-integrity's superblock. What the
// kernel makes of it is its own affair, but no block may read as something else.
func TestFlipSuperblock(t *testing.T) {
	d := newDamage(t)
	for _, at := range []int64{0, 8, 9, 10, 12, 16, 24, 28, 29, 32, 100, 4000} {
		d.flip(header.Area + at)
		o := d.look("the superblock", 0, nil)
		t.Logf("byte %d: opened %v, %d blocks can't be read", at, o.opened, len(o.unreadable))
	}
	if o := d.look("no damage", 0, nil); !o.opened || o.unreadable != nil {
		t.Errorf("put back as it was, it is %+v", o)
	}
}

// TestFlipBlocks flips a bit of several tags and of several blocks, in two runs, all at
// once: each is a block that can't be read, and no other is.
func TestFlipBlocks(t *testing.T) {
	d := newDamage(t)
	tags, blocks := []int64{0, 78, 1000, runBlocks - 1, runBlocks + 100}, []int64{3, 79, 1001, runBlocks - 2, runBlocks, runBlocks + 101}
	for i, block := range tags {
		d.flip(d.layout.tag(block) + int64(i)*6)
	}
	for i, block := range blocks {
		d.flip(d.layout.data(block) + int64(i)*800)
	}
	want := slices.Concat(tags, blocks)
	slices.Sort(want)
	if o := d.look("tags and blocks", 0, nil); !o.opened || !slices.Equal(o.unreadable, want) {
		t.Errorf("opened %v, and these can't be read: %v, not %v", o.opened, o.unreadable, want)
	}
}

// TestFlipJournal flips a bit in several places of dm-integrity's journal, when there is
// nothing in it any more that counts, and then when the power was cut and some blocks
// are nowhere else. Those are as they were written, or can't be read, or are what they
// were before: where a block belongs has no tag in the journal, and one that goes
// elsewhere can't be read there. Where a mark of what is whole is damaged, the kernel
// reads nothing at all.
func TestFlipJournal(t *testing.T) {
	d := newDamage(t)
	for at := d.layout.journal; at < d.layout.tags; at += 301_000 {
		d.flip(at)
	}
	if o := d.look("a journal without content", 0, nil); !o.opened || o.unreadable != nil {
		t.Errorf("a journal without content: %+v", o)
	}

	const first = 11
	newer := [][]byte{bytes.Repeat([]byte{1}, blockSize), bytes.Repeat([]byte{2}, blockSize), bytes.Repeat([]byte{3}, blockSize)}
	changed := d.leaveInJournal(first, newer)
	if o := d.look("no damage", first, newer); !o.opened || o.unreadable != nil || o.older != nil {
		t.Fatalf("what is in the journal is lost: %+v", o)
	}
	for kind, places := range changed {
		for i := range 4 {
			at := places[i*(len(places)-1)/3]
			d.flip(at)
			o := d.look(kind+" in the journal", first, newer)
			t.Logf("%s, byte %d of the journal: opened %v, %d blocks can't be read, %d are older", kind, at-d.layout.journal, o.opened, len(o.unreadable), len(o.older))
			if kind != "mark" && (!o.opened || len(o.unreadable) > 2) {
				t.Errorf("a bit flipped in a %s at %d makes more unreadable than a block and what it takes the place of: %+v", kind, at, o)
			}
		}
	}
}

// leaveInJournal writes blocks, from one on, and cuts the power while they are in the
// journal alone. It returns where the journal has changed: in marks of what is whole, in
// places and tags of blocks, and in blocks.
func (d *damage) leaveInJournal(first int64, blocks [][]byte) map[string][]int64 {
	d.t.Helper()
	v := d.unlock()
	device, err := os.OpenFile(v.device, os.O_RDWR, 0)
	d.must(err)
	_, err = device.WriteAt(bytes.Join(blocks, nil), first*blockSize)
	d.must(errors.Join(err, device.Sync(), d.cut(), device.Close(), v.Close()))
	d.restore()
	now, changed := d.read(0, kept), map[string][]int64{}
	for i := d.layout.journal; i < kept; i++ {
		in := i - d.layout.journal
		switch {
		case now[i] == d.sound[i]:
		case i >= d.layout.tags:
			d.t.Fatalf("there is more than the journal that has changed: byte %d", i)
		case in%512 >= 512-8:
			changed["mark"] = append(changed["mark"], i)
		case in%sectionSize < 8*512:
			changed["entry"] = append(changed["entry"], i)
		default:
			changed["block"] = append(changed["block"], i)
		}
	}
	if len(changed) != 3 {
		d.t.Fatalf("the journal has changed in %d kinds of places", len(changed))
	}
	d.sound = now
	return changed
}

// TestReadError has a program read a file of which a block was changed, and then one of
// which the disk doesn't give a block.
func TestReadError(t *testing.T) {
	s := newSupply(t, inMachine(t)[0], smallest)
	v := s.format()
	folder := s.mount(v)
	s.store(folder)
	const second, third = 1, 2
	altered, lost := s.place(folder, third), s.place(folder, second)
	s.end(v, folder)
	where := s.layout()
	s.flip(where.data(altered) + 99)
	s.breakAt(where.data(lost), where.data(lost)+blockSize)
	v = s.unlock()
	folder = s.mount(v)
	file, err := os.Open(filepath.Join(folder, "file"))
	s.must(err)
	for block := range int64(5) {
		got := make([]byte, blockSize)
		n, err := file.ReadAt(got, block*blockSize)
		if block == second || block == third {
			if !errors.Is(err, unix.EIO) {
				t.Errorf("of block %d %d bytes, %v", block, n, err)
			}
		} else if err != nil || !bytes.Equal(got, content[block*blockSize:][:blockSize]) {
			t.Errorf("of block %d %d bytes, %v", block, n, err)
		}
	}
	s.must(file.Close())
	s.end(v, folder)
}

// place returns in which block of the volume the file has a block.
func (s *supply) place(folder string, block int32) int64 {
	s.t.Helper()
	file, err := os.Open(filepath.Join(folder, "file"))
	s.must(err)
	defer file.Close()
	const fibmap = 1 // FIBMAP (Linux, include/uapi/linux/fs.h): the block in the file, and then in the file system.
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, file.Fd(), fibmap, uintptr(unsafe.Pointer(&block))); errno != 0 {
		s.t.Fatal(errno)
	}
	return int64(block)
}
