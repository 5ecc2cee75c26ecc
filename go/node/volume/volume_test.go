package volume

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"powercloud.unidatum.com/go/cluster/volumeid"
	"powercloud.unidatum.com/go/node/volume/header"
	"powercloud.unidatum.com/go/pki"
	"powercloud.unidatum.com/go/sys/dm"
)

const mib = 1 << 20

var owner = header.Owner{Volume: volumeid.ID{1, 2, 3}, Node: pki.NodeID{4, 5, 6}, Name: "home-1"}

// partition makes a file that stands in for a partition, with some content at its
// beginning.
func partition(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "vda2")
	if err := errors.Join(os.WriteFile(name, []byte(content), 0o600), os.Truncate(name, 2*mib)); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestLook(t *testing.T) {
	blank := partition(t, "")
	if _, err := Look(blank); !errors.Is(err, ErrBlank) {
		t.Errorf("a blank partition: %v", err)
	}
	admin := &header.Key{7}
	h, key, err := header.New(rand.Reader, owner, admin)
	if err != nil {
		t.Fatal(err)
	}
	if err := writeHeader(blank, h); err != nil {
		t.Fatal(err)
	}
	copies, err := Look(blank)
	if err != nil || len(copies) != 2 || copies[0].Owner != owner {
		t.Errorf("%+v, %v", copies, err)
	}
	wrong := &header.Key{8}
	if _, _, err := Unlock(blank, wrong); !errors.Is(err, header.ErrWrongKey) || err.Error() != "unlock the state disk "+blank+": the key doesn't open the state volume" {
		t.Errorf("a wrong key: %v", err)
	}
	rename := func(h *header.Header, key *header.Key) (*header.Header, error) { return h.With(key, "colo-2", h.Slots) }
	open := func(h *header.Header) (*header.Key, error) { return h.Unlock(admin) }
	if err := Change(blank, open, rename); err != nil {
		t.Error(err)
	}
	if copies, err = Look(blank); err != nil || copies[0].Owner.Name != "colo-2" || copies[1].Serial != 2 || copies[0].Verify(key) != nil {
		t.Errorf("%+v, %v", copies, err)
	}
	if err := Change(blank, func(h *header.Header) (*header.Key, error) { return h.Unlock(wrong) }, rename); !errors.Is(err, header.ErrWrongKey) {
		t.Errorf("a change with a wrong key: %v", err)
	}
	if _, err := Format(t.Context(), Options{Partition: blank}); err == nil || !strings.Contains(err.Error(), "already holds the volume 0102030000") {
		t.Errorf("a format of a volume: %v", err)
	}
	if err := Erase(blank); err != nil {
		t.Error(err)
	}
	if _, err := Look(blank); !errors.Is(err, ErrBlank) {
		t.Errorf("an erased partition: %v", err)
	}
}

func TestRefused(t *testing.T) {
	foreign := partition(t, "\x00\x00a file system")
	want := "state disk " + foreign + " holds data that is not a PowerCloud volume; refusing to format it (the boot option powercloud.state.wipe=1 wipes it)"
	if _, err := Format(t.Context(), Options{Partition: foreign}); !errors.Is(err, ErrForeign) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	damaged := partition(t, "PCvolume, and then something else")
	if _, err := Format(t.Context(), Options{Partition: damaged}); !errors.Is(err, header.ErrHeader) || errors.Is(err, ErrForeign) {
		t.Errorf("a damaged header: %v", err)
	}
	if _, err := Look(partition(t, "PCerased")); !errors.Is(err, ErrBlank) {
		t.Errorf("a header that was erased in part: %v", err)
	}
	small := partition(t, "")
	o := Options{Partition: small, Owner: owner, Admin: &header.Key{}, Random: rand.Reader, Template: strings.NewReader("")}
	if _, err := Format(t.Context(), o); err == nil || !strings.HasSuffix(err.Error(), "it has 2 MiB, and a state volume takes 128") {
		t.Errorf("a small partition: %v", err)
	}
	if _, err := Look(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("no partition")
	}
}

// TestWipe has what could be a volume stay, and the rest made blank.
func TestWipe(t *testing.T) {
	const primary, backup = 0, header.Area / 2
	for name, c := range map[string]struct {
		content map[int64]string
		wiped   bool
		err     error
	}{
		"blank":                 {nil, false, nil},
		"something else":        {map[int64]string{primary: "\x00\x00a file system", header.Area + 4096: integrityMagic}, true, nil},
		"a damaged header":      {map[int64]string{primary: "PCvolume, and then something else"}, false, nil},
		"a damaged backup":      {map[int64]string{primary: "something else", backup: "PCvolume, and then something else"}, false, nil},
		"no header any more":    {map[int64]string{primary: "something else", backup: "too", header.Area: integrityMagic}, false, ErrHeaderless},
		"no superblock, either": {map[int64]string{primary: "something else", backup: "too", header.Area: "integrty"}, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			path := partition(t, "")
			for at, content := range c.content {
				write := func(disk *os.File) error {
					_, err := disk.WriteAt([]byte(content), at)
					return err
				}
				if err := withDisk(path, write); err != nil {
					t.Fatal(err)
				}
			}
			was, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if wiped, err := Wipe(path); wiped != c.wiped || !errors.Is(err, c.err) {
				t.Errorf("wiped %v, %v", wiped, err)
			}
			if c.wiped {
				clear(was[:header.Area])
			}
			if is, err := os.ReadFile(path); err != nil || !bytes.Equal(is, was) {
				t.Errorf("the partition isn't what it should be, %v", err)
			}
			if wiped, err := Wipe(path); wiped || !errors.Is(err, c.err) {
				t.Errorf("wiped again %v, %v", wiped, err)
			}
		})
	}
	short := partition(t, "something else")
	if err := os.Truncate(short, header.Area); err != nil {
		t.Fatal(err)
	}
	if wiped, err := Wipe(short); !wiped || err != nil {
		t.Errorf("a partition that ends with the header's place: %v, %v", wiped, err)
	}
}

// TestNextSize follows growth from the template's size on, for disks of all sizes.
func TestNextSize(t *testing.T) {
	const doublings = 20
	for _, volume := range []int64{100 * mib, 128 * mib, 135 * mib, 760 * mib, 768*mib + 8192, 790 * mib, 7811*mib + 4096, 1 << 40, 3<<42 + 12345*4096} {
		size, count := int64(32*mib), 0
		for next := nextSize(size, volume); next != size; next = nextSize(size, volume) {
			if next < size || next > volume || next%blockSize != 0 {
				t.Fatalf("of %d: %d follows %d", volume, next, size)
			}
			if tail := next % groupSize; next > groupSize && tail != 0 && tail < minTail {
				t.Errorf("of %d: %d ends with a group of %d bytes", volume, next, tail)
			}
			if volume > 1024*mib && next > 2*size+groupSize {
				t.Errorf("of %d: %d follows %d, which takes long", volume, next, size)
			}
			size = next
			count++
		}
		if volume-size >= minTail || count > steps+doublings {
			t.Errorf("of %d bytes, %d are used after %d steps", volume, size, count)
		}
	}
	if next := nextSize(64*mib, 32*mib); next != 64*mib {
		t.Errorf("a volume smaller than its file system makes it grow to %d", next)
	}
	if next := nextSize(0, 256*mib); next <= 0 || next > 256*mib {
		t.Errorf("an empty file system makes it grow to %d", next)
	}
}

func TestProvided(t *testing.T) {
	if sectors, err := provided([]dm.Target{{Parameters: "0 15996928 -"}}); err != nil || sectors != 15996928 {
		t.Errorf("%d, %v", sectors, err)
	}
	for _, bad := range []string{"", "0", "0 0 -", "0 7 -", "0 -8 -", "0 99999999999999999999 -", "0 x"} {
		if _, err := provided([]dm.Target{{Parameters: bad}}); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
	if _, err := provided(nil); err == nil {
		t.Error("no status was read")
	}
}

// standIn is what passes for a file system until it is mounted.
func standIn(blocks int) []byte {
	content := make([]byte, blocks*blockSize)
	superblock := content[superblockOffset:]
	le := binary.LittleEndian
	le.PutUint16(superblock[magicOffset:], superblockMagic)
	le.PutUint32(superblock[logSizeOffset:], 2)
	le.PutUint32(superblock[countLowOffset:], uint32(blocks))
	le.PutUint32(superblock[checksumOffset:], superblockSum(superblock[:superblockSize]))
	content[len(content)-1] = 0x5a
	return content
}

// memory is a device in memory.
type memory []byte

func (m *memory) WriteAt(b []byte, offset int64) (int, error) {
	if end := int(offset) + len(b); end > len(*m) {
		*m = append(*m, make([]byte, end-len(*m))...)
	}
	return copy((*m)[offset:], b), nil
}

func TestCopyTemplate(t *testing.T) {
	const blocks = 600 // More than one piece, and not a whole number of them.
	source := standIn(blocks)
	var first, second memory
	for _, target := range []*memory{&first, &second} {
		size, err := copyTemplate(t.Context(), target, bytes.NewReader(source), rand.Reader)
		if err != nil || size != blocks*blockSize {
			t.Fatalf("%d, %v", size, err)
		}
		if size, err := fileSystemSize(bytes.NewReader(*target)); err != nil || size != blocks*blockSize {
			t.Errorf("the file system has %d bytes, %v", size, err)
		}
	}
	if bytes.Equal(first, second) {
		t.Error("two volumes have the same UUID")
	}
	if superblock := first[superblockOffset:][:superblockSize]; binary.LittleEndian.Uint32(superblock[checksumOffset:]) != superblockSum(superblock) {
		t.Error("the checksum is wrong")
	}
	for _, part := range [][2]int{{uuidOffset, 16}, {seedOffset, 16}, {checksumOffset, 4}} {
		copy(first[superblockOffset+part[0]:][:part[1]], source[superblockOffset+part[0]:])
	}
	if !bytes.Equal(first, source) {
		t.Error("more than the UUID, the seed and the checksum is different")
	}
}

func TestBadTemplates(t *testing.T) {
	good := standIn(300)
	changed := bytes.Clone(good)
	changed[superblockOffset+countLowOffset] ^= 1
	for name, bad := range map[string][]byte{"empty": nil, "short": good[:1500], "in part": good[:len(good)-1], "changed": changed, "zeros": make([]byte, 1<<20)} {
		if _, err := copyTemplate(t.Context(), new(memory), bytes.NewReader(bad), rand.Reader); err == nil {
			t.Errorf("a template that is %s was taken", name)
		}
	}
	if _, err := copyTemplate(t.Context(), new(memory), bytes.NewReader(good), io.LimitReader(rand.Reader, 20)); err == nil {
		t.Error("it had a UUID without random bytes")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := copyTemplate(ctx, new(memory), bytes.NewReader(good), rand.Reader); !errors.Is(err, context.Canceled) {
		t.Errorf("it wasn't stopped: %v", err)
	}
	v := &Volume{device: partition(t, ""), size: 1 * mib}
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.writeTemplate(t.Context(), bytes.NewReader(encoder.EncodeAll(good, nil)), rand.Reader); err == nil || !strings.Contains(err.Error(), "more than the volume's") {
		t.Errorf("a template that is too large: %v", err)
	}
	if err := v.writeTemplate(t.Context(), bytes.NewReader(good), rand.Reader); err == nil || !strings.HasPrefix(err.Error(), "read the template: ") {
		t.Errorf("a template that isn't compressed: %v", err)
	}
}

func TestFileSystemSize(t *testing.T) {
	good := standIn(300)
	for offset, value := range map[int]byte{magicOffset: 0, logSizeOffset: 3, countHighOffset + 3: 1} {
		bad := bytes.Clone(good)
		bad[superblockOffset+offset] = value
		if size, err := fileSystemSize(bytes.NewReader(bad)); err == nil {
			t.Errorf("with %d at %#x it has %d bytes", value, offset, size)
		}
	}
	if _, err := fileSystemSize(bytes.NewReader(good[:100])); err == nil {
		t.Error("a device that ends was read")
	}
}
