package volume

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"powercloud.unidatum.com/go/node/volume/header"
	"powercloud.unidatum.com/go/sys/dm"
)

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
