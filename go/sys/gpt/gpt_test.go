package gpt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/partition/gpt"
)

const (
	ours = "C79A858A-2459-4D7F-B235-89112A276786"
	mib  = 1 << 20
)

// memory is a disk in memory that fails after so many writes, the last of which
// it cuts off. A negative number never ends.
type memory struct {
	content []byte
	writes  int
	torn    int // Bytes of the last write that arrive.
}

var errCut = errors.New("the power is cut")

func (m *memory) ReadAt(b []byte, offset int64) (int, error) {
	return bytes.NewReader(m.content).ReadAt(b, offset)
}

func (m *memory) WriteAt(b []byte, offset int64) (int, error) {
	if m.writes == 0 {
		n := copy(m.content[offset:], b[:min(len(b), m.torn)])
		return n, errCut
	}
	m.writes--
	return copy(m.content[offset:], b), nil
}

func (m *memory) Sync() error {
	if m.writes == 0 {
		return errCut
	}
	return nil
}

// makeDisk makes a disk with a table for its first part, all in bytes: a system
// partition, and partitions of ours in the places given by pairs of first and last
// mebibyte.
func makeDisk(t testing.TB, size, part int64, sector int, places ...int64) []byte {
	t.Helper()
	name := filepath.Join(t.TempDir(), "disk")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(part); err != nil {
		t.Fatal(err)
	}
	per := uint64(mib / sector)
	made := &gpt.Table{
		LogicalSectorSize: sector, PhysicalSectorSize: sector, ProtectiveMBR: true,
		Partitions: []*gpt.Partition{{Index: 1, Type: gpt.EFISystemPartition, Name: "EFI system", Start: per, End: 2*per - 1}},
	}
	for pair := range slices.Chunk(places, 2) {
		made.Partitions = append(made.Partitions, &gpt.Partition{
			Index: len(made.Partitions) + 1, Type: ours, Name: "PowerCloud state", Attributes: 1 << 60,
			Start: uint64(pair[0]) * per, End: uint64(pair[1])*per + per - 1,
		})
	}
	writable, err := file.New(f, false).Writable()
	if err != nil {
		t.Fatal(err)
	}
	if err := made.Write(writable, part); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return append(content, make([]byte, size-part)...)
}

var sectorSizes = []int{512, 4096}

func TestGrow(t *testing.T) {
	for _, sector := range sectorSizes {
		t.Run(fmt.Sprint(sector), func(t *testing.T) {
			d := &memory{content: makeDisk(t, 16*mib, 8*mib, sector, 2, 6), writes: -1}
			before := bytes.Clone(d.content[mib : 8*mib-64*int64(sector)])
			p, err := grow(d, 16*mib, sector, 2)
			if err != nil {
				t.Fatal(err)
			}
			if p.Start*uint64(sector) != 2*mib || (p.End+1)*uint64(sector) != 15*mib || p.Size != 13*mib {
				t.Errorf("it is %d to %d, %d bytes", p.Start, p.End, p.Size)
			}
			if !bytes.Equal(before, d.content[mib:8*mib-64*int64(sector)]) {
				t.Error("what is in the partitions changed")
			}
			checkCopies(t, d.content, sector)
			d.writes = 0 // It must not write again.
			if _, err := grow(d, 16*mib, sector, 2); err != nil {
				t.Errorf("the second time: %v", err)
			}
		})
	}
}

// checkCopies reads both copies of a table by the UEFI specification, not with the
// module.
func checkCopies(t *testing.T, content []byte, sector int) {
	t.Helper()
	le := binary.LittleEndian
	last := uint64(len(content)/sector - 1)
	if got := le.Uint32(content[446+12:]); uint64(got) != last {
		t.Errorf("the protective MBR ends with sector %d, not %d", got, last)
	}
	var tables [][]byte
	for own, other := range map[uint64]uint64{1: last, last: 1} {
		header := bytes.Clone(content[own*uint64(sector):][:92])
		sum := le.Uint32(header[16:])
		le.PutUint32(header[16:], 0)
		if string(header[:8]) != "EFI PART" || crc32.ChecksumIEEE(header) != sum || le.Uint64(header[24:]) != own || le.Uint64(header[32:]) != other {
			t.Errorf("the header in sector %d is %x", own, header)
		}
		entries := content[le.Uint64(header[72:])*uint64(sector):][:128*128]
		if crc32.ChecksumIEEE(entries) != le.Uint32(header[88:]) {
			t.Errorf("the entries of the header in sector %d have another sum", own)
		}
		if lastUsable := last - 1 - uint64(128*128/sector); le.Uint64(header[48:]) != lastUsable {
			t.Errorf("the header in sector %d has usable sectors up to %d, not %d", own, le.Uint64(header[48:]), lastUsable)
		}
		tables = append(tables, entries)
	}
	if !bytes.Equal(tables[0], tables[1]) {
		t.Error("the two copies differ")
	}
	if attributes := le.Uint64(tables[0][128+48:]); attributes != 1<<60 {
		t.Errorf("the attributes are %x", attributes)
	}
}

// TestCut cuts the power at every write, before, in the middle of and after it.
// The partition must still be found, and grow in the end.
func TestCut(t *testing.T) {
	damages := map[string]func(content []byte, sector int){
		"whole":          func([]byte, int) {},
		"no primary":     func(b []byte, sector int) { clear(b[sector : 2*sector]) },
		"primary cut":    func(b []byte, sector int) { clear(b[2*sector : 3*sector]) },
		"backup damaged": func(b []byte, sector int) { b[len(b)-sector] ^= 1 },
	}
	for _, sector := range sectorSizes {
		for name, damage := range damages {
			for _, size := range []int64{5 * mib, 9 * mib} {
				if size != 5*mib && strings.Contains(name, "primary") {
					continue // Nothing finds a backup that isn't at the end.
				}
				start := makeDisk(t, size, 5*mib, sector, 2, 2)
				damage(start, sector)
				steps := 0
				for ; ; steps++ {
					finished := true
					for _, torn := range []int{0, 1, 512, 4096, 8192, 1 << 20} {
						d := &memory{content: bytes.Clone(start), writes: steps, torn: torn}
						if _, err := grow(d, size, sector, 2); errors.Is(err, errCut) {
							finished = false
						} else if err != nil {
							t.Fatal(err)
						}
						where := fmt.Sprintf("%d, %s, %d bytes, cut in write %d after %d bytes", sector, name, size, steps, torn)
						if found, err := readTable(d, size, sector); err != nil || len(found.find(ours)) != 1 {
							t.Fatalf("%s: %v", where, err)
						}
						d.writes = -1
						p, err := grow(d, size, sector, 2)
						if err != nil || int64(p.End+1)*int64(sector) != size-mib {
							t.Fatalf("%s: %+v, %v", where, p, err)
						}
						checkCopies(t, d.content, sector)
					}
					if finished {
						break
					}
				}
				if steps < 2 {
					t.Errorf("%d, %s, %d bytes: only %d writes", sector, name, size, steps)
				}
			}
		}
	}
}

func TestStays(t *testing.T) {
	// Ours is not the last one.
	d := &memory{content: makeDisk(t, 16*mib, 8*mib, 512, 2, 3, 5, 6), writes: -1}
	p, err := grow(d, 16*mib, 512, 2)
	if err != nil || p.Size != 2*mib {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := grow(d, 16*mib, 512, 9); err == nil {
		t.Error("a partition grew that isn't there")
	}
	// The disk shrank.
	d = &memory{content: makeDisk(t, 16*mib, 16*mib, 512, 2, 14)[:8*mib], writes: -1}
	if _, err := grow(d, 8*mib, 512, 2); err == nil || !strings.Contains(err.Error(), "is not on the disk") {
		t.Errorf("a disk that shrank: %v", err)
	}
}

func TestHostile(t *testing.T) {
	for name, c := range map[string]struct {
		change func(header []byte)
		want   string
	}{
		"many entries":  {func(h []byte) { binary.LittleEndian.PutUint32(h[80:], 1<<31) }, "entries of 128 bytes"},
		"large entries": {func(h []byte) { binary.LittleEndian.PutUint32(h[84:], 1<<31) }, "entries of 2147483648 bytes"},
		"far entries":   {func(h []byte) { binary.LittleEndian.PutUint64(h[72:], 1<<60) }, "in sector 1152921504606846976"},
	} {
		for _, primary := range []bool{true, false} {
			content := makeDisk(t, 8*mib, 8*mib, 512, 2, 6)
			header := content[512:1024]
			if !primary {
				header = content[len(content)-512:]
			}
			c.change(header)
			resum(header)
			if _, err := readTable(bytes.NewReader(content), 8*mib, 512); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
		}
	}
	// The backup says that the primary belongs into a partition.
	content := makeDisk(t, 8*mib, 8*mib, 512, 2, 6)
	clear(content[512:1024])
	header := content[len(content)-512:]
	binary.LittleEndian.PutUint64(header[32:], 3*mib/512)
	resum(header)
	d := &memory{content: content}
	if _, err := grow(d, 8*mib, 512, 2); err == nil || !strings.Contains(err.Error(), "lies where a partition table belongs") {
		t.Errorf("a primary inside of a partition: %v", err)
	}
}

// resum sets the sum of a header right.
func resum(header []byte) {
	binary.LittleEndian.PutUint32(header[16:], 0)
	binary.LittleEndian.PutUint32(header[16:], crc32.ChecksumIEEE(header[:92]))
}

func FuzzReadTable(f *testing.F) {
	for _, sector := range sectorSizes {
		content := makeDisk(f, mib*4, mib*4, sector, 2, 2)
		f.Add(content[:6*sector], content[len(content)-6*sector:], sector == 4096)
	}
	f.Add([]byte{}, []byte{}, false)
	f.Fuzz(func(t *testing.T, front, back []byte, large bool) {
		const size = 64 << 10
		sector := 512
		if large {
			sector = 4096
		}
		content := make([]byte, size)
		copy(content, front)
		copy(content[size-min(size, len(back)):], back)
		// With the sums set right, more of it is reached.
		for range 2 {
			found, err := readTable(bytes.NewReader(content), size, sector)
			if err == nil {
				if steps, err := found.writes(); err == nil && len(steps) != 4 {
					t.Errorf("%d writes", len(steps))
				}
			}
			le := binary.LittleEndian
			for _, at := range []int{sector, size - sector} {
				header := content[at : at+sector]
				if first, count := le.Uint64(header[72:]), le.Uint32(header[80:]); first < size/uint64(sector) && count <= 256 {
					if entries := content[int(first)*sector:]; len(entries) >= int(count)*128 {
						le.PutUint32(header[88:], crc32.ChecksumIEEE(entries[:count*128]))
					}
				}
				resum(header)
			}
		}
	})
}

// fake makes the files in which the kernel shows disks.
type fake struct {
	t *testing.T
	m Machine
}

func newFake(t *testing.T) fake {
	folder := t.TempDir()
	f := fake{t, Machine{Sys: filepath.Join(folder, "sys"), Dev: filepath.Join(folder, "dev")}}
	f.write("dev/null", nil)
	f.write("sys/block/.keep", nil)
	return f
}

func (f fake) write(name string, content []byte) {
	f.t.Helper()
	path := filepath.Join(filepath.Dir(f.m.Sys), name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, content, 0o600)); err != nil {
		f.t.Fatal(err)
	}
}

func (f fake) disk(name string, content []byte, sector int) {
	f.t.Helper()
	f.write("dev/"+name, content)
	f.write("sys/block/"+name+"/size", fmt.Appendln(nil, len(content)/512))
	f.write("sys/block/"+name+"/queue/logical_block_size", fmt.Appendln(nil, sector))
	f.write("sys/block/"+name+"/device/model", nil)
}

func TestFind(t *testing.T) {
	f := newFake(t)
	_, err := f.m.Find(ours)
	if !errors.Is(err, ErrNone) {
		t.Errorf("without a disk: %v", err)
	}
	f.disk("sda", make([]byte, 4*mib), 512)
	f.disk("sdb", makeDisk(t, 4*mib, 4*mib, 512), 512)
	f.disk("sr0", nil, 2048)
	if _, err = f.m.Find(ours); !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "sda") {
		t.Errorf("without a partition: %v", err)
	}
	f.disk("nvme0n1", makeDisk(t, 8*mib, 8*mib, 4096, 2, 5), 4096)
	f.write("sys/block/loop0/size", []byte("8192\n"))
	p, err := f.m.Find(strings.ToLower(ours))
	want := Partition{Disk: "nvme0n1", Index: 2, Device: filepath.Join(f.m.Dev, "nvme0n1p2"), Offset: 2 * mib, Size: 4 * mib, SectorSize: 4096}
	if err != nil || p != want {
		t.Errorf("%+v, %v", p, err)
	}
	f.disk("vda", makeDisk(t, 8*mib, 8*mib, 512, 2, 5), 512)
	_, err = f.m.Find(ours)
	if !errors.Is(err, ErrSeveral) || !strings.HasSuffix(err.Error(), "nvme0n1p2, "+filepath.Join(f.m.Dev, "vda2")) {
		t.Errorf("two of them: %v", err)
	}
}

func TestGrowFile(t *testing.T) {
	f := newFake(t)
	f.disk("vda", makeDisk(t, 16*mib, 8*mib, 512, 2, 5), 512)
	f.write("sys/block/vda/vda2/start", fmt.Appendln(nil, 2*mib/512))
	f.write("sys/block/vda/vda2/size", fmt.Appendln(nil, 13*mib/512))
	p, err := f.m.Find(ours)
	if err != nil {
		t.Fatal(err)
	}
	if p, err = f.m.Grow(p); err != nil || p.Size != 13*mib {
		t.Errorf("%+v, %v", p, err)
	}
	content, err := os.ReadFile(filepath.Join(f.m.Dev, "vda"))
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	checkCopies(t, content, 512)
	f.write("sys/block/vda/vda2/start", []byte("64\n"))
	if _, err := f.m.Grow(p); err == nil || !strings.Contains(err.Error(), "another place") {
		t.Errorf("the kernel has it elsewhere: %v", err)
	}
}
