package manifest_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/go/keys"
	"powercloud.unidatum.com/go/store/chunk"
	"powercloud.unidatum.com/go/store/manifest"
)

// counting is a source of bytes that are not random.
type counting byte

func (c *counting) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(*c)
		*c++
	}
	return len(p), nil
}

func newSealer(t testing.TB) *manifest.Sealer {
	t.Helper()
	root, err := keys.NewRoot(new(counting))
	if err != nil {
		t.Fatal(err)
	}
	s, err := manifest.NewSealer(root)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// example returns a manifest with the given number of chunks.
func example(chunks int) *manifest.Manifest {
	m := &manifest.Manifest{
		Name:     "docs/ä.txt",
		Version:  manifest.Version{Time: 1_700_000_000_123_456_789, Tie: [16]byte{1, 2, 3}},
		Size:     int64(chunks)*chunk.Size - 5,
		FileTime: 1_600_000_000_000_000_001,
		FileMode: 0o640,
		Chunks:   make([]chunk.Ref, chunks),
	}
	for i := range m.Chunks {
		m.Chunks[i] = chunk.Ref{ID: chunk.ID{byte(i), byte(i >> 8), 9}, Generation: uint32(i), Sum: 0xfe000000 + uint32(i)}
	}
	return m
}

func mustSeal(t testing.TB, s *manifest.Sealer, m *manifest.Manifest) []byte {
	t.Helper()
	sealed, err := s.Seal(m, new(counting))
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

func TestRoundTrip(t *testing.T) {
	s := newSealer(t)
	empty := example(1)
	empty.Size, empty.Chunks = 0, []chunk.Ref{}
	tombstone := &manifest.Manifest{Name: "gone", Deleted: true, Version: manifest.Version{Time: 5}, Chunks: []chunk.Ref{}}
	for _, m := range []*manifest.Manifest{empty, tombstone, example(1), example(4096), example(4097), example(10_000)} {
		opened, err := s.Open(s.BlobName(m.Name), mustSeal(t, s, m))
		if err != nil {
			t.Errorf("%d chunks: %v", len(m.Chunks), err)
		} else if !reflect.DeepEqual(opened, m) {
			t.Errorf("%d chunks: the manifest came back different", len(m.Chunks))
		}
	}
}

func TestEveryAlteredByteIsCorrupt(t *testing.T) {
	s := newSealer(t)
	m := example(2)
	name, sealed := s.BlobName(m.Name), mustSeal(t, s, m)
	for i := range sealed {
		altered := bytes.Clone(sealed)
		altered[i] ^= 0x80
		if _, err := s.Open(name, altered); !errors.Is(err, manifest.ErrCorrupt) {
			t.Errorf("byte %d altered: error %v, want ErrCorrupt", i, err)
		}
		if _, err := s.Open(name, sealed[:i]); !errors.Is(err, manifest.ErrCorrupt) {
			t.Errorf("cut to %d bytes: error %v, want ErrCorrupt", i, err)
		}
	}
	if _, err := s.Open(name, append(bytes.Clone(sealed), 0)); !errors.Is(err, manifest.ErrCorrupt) {
		t.Errorf("a byte more: error %v, want ErrCorrupt", err)
	}
}

// TestLaterVersion tells a manifest of a later version of the format from a damaged
// one, of which only the version's byte may be what was damaged.
func TestLaterVersion(t *testing.T) {
	const version = 7
	s := newSealer(t)
	m := example(2)
	name, sealed := s.BlobName(m.Name), mustSeal(t, s, m)
	later := bytes.Clone(sealed)
	later[version+1] ^= 1
	for digit := range 256 {
		for _, b := range [][]byte{sealed, later} {
			b := bytes.Clone(b)
			b[version] = byte(digit)
			want := manifest.ErrCorrupt
			switch {
			case digit == '2' && bytes.Equal(b, sealed):
				want = nil
			case digit > '2' && digit <= '9' && b[version+1] == later[version+1]:
				want = manifest.ErrNewer
			}
			if _, err := s.Open(name, b); !errors.Is(err, want) {
				t.Errorf("version %q: error %v, want %v", b[version], err, want)
			}
		}
	}
	later[version] = '3'
	later[0] ^= 1
	if _, err := s.Open(name, later); !errors.Is(err, manifest.ErrCorrupt) {
		t.Errorf("another magic: error %v, want ErrCorrupt", err)
	}
	// A head of any size is none of a known version.
	for _, size := range []uint32{0, 1, 1 << 20, 1<<32 - 1} {
		b := append([]byte("PCmanif9"), make([]byte, 100)...)
		binary.BigEndian.PutUint32(b[24:], size)
		if _, err := s.Open(name, b); !errors.Is(err, manifest.ErrNewer) {
			t.Errorf("a head of %d bytes: error %v, want ErrNewer", size, err)
		}
	}
}

// TestVersionOneWithADamagedVersion is of a manifest that is only read any more.
func TestVersionOneWithADamagedVersion(t *testing.T) {
	s := newSealer(t)
	_, sealed := golden(t, "testdata/manifest-v1.hex")
	sealed[7] = '3'
	if _, err := s.Open(s.BlobName(example(3).Name), sealed); !errors.Is(err, manifest.ErrCorrupt) {
		t.Errorf("error %v, want ErrCorrupt", err)
	}
}

func TestSegmentsCantBeDroppedOrSwapped(t *testing.T) {
	s := newSealer(t)
	m := example(3 * 4096)
	name, sealed := s.BlobName(m.Name), mustSeal(t, s, m)
	const list = 4096*40 + 16
	head := len(sealed) - 3*list
	part := func(i int) []byte { return sealed[head+i*list : head+(i+1)*list] }
	for title, altered := range map[string][]byte{
		"last dropped":  sealed[:head+2*list],
		"first dropped": bytes.Join([][]byte{sealed[:head], part(1), part(2)}, nil),
		"swapped":       bytes.Join([][]byte{sealed[:head], part(1), part(0), part(2)}, nil),
		"repeated":      bytes.Join([][]byte{sealed[:head], part(0), part(0), part(2)}, nil),
	} {
		if _, err := s.Open(name, altered); !errors.Is(err, manifest.ErrCorrupt) {
			t.Errorf("%s: error %v, want ErrCorrupt", title, err)
		}
	}
}

func TestOtherNameIsCorrupt(t *testing.T) {
	s := newSealer(t)
	if _, err := s.Open(s.BlobName("other"), mustSeal(t, s, example(1))); !errors.Is(err, manifest.ErrCorrupt) {
		t.Errorf("a manifest under another's name: error %v, want ErrCorrupt", err)
	}
}

func TestSealRefusesNonsense(t *testing.T) {
	s := newSealer(t)
	cases := map[string]func(*manifest.Manifest){
		"no name":               func(m *manifest.Manifest) { m.Name = "" },
		"long name":             func(m *manifest.Manifest) { m.Name = strings.Repeat("x", manifest.MaxName+1) },
		"too few chunks":        func(m *manifest.Manifest) { m.Size += chunk.Size },
		"too many chunks":       func(m *manifest.Manifest) { m.Size -= chunk.Size },
		"negative size":         func(m *manifest.Manifest) { m.Size = -1 },
		"tombstone with chunks": func(m *manifest.Manifest) { m.Deleted = true },
		"setuid":                func(m *manifest.Manifest) { m.FileMode = 0o4755 },
	}
	for title, change := range cases {
		m := example(2)
		change(m)
		if _, err := s.Seal(m, new(counting)); err == nil {
			t.Errorf("%s: sealed", title)
		}
	}
}

func TestVersions(t *testing.T) {
	now := time.Unix(100, 0)
	first, err := manifest.Version{}.Next(now, new(counting))
	if err != nil {
		t.Fatal(err)
	}
	if first.Time != now.UnixNano() {
		t.Errorf("the first version is dated %d, want %d", first.Time, now.UnixNano())
	}
	// A clock that goes backwards must not make a new version older.
	second, err := first.Next(now.Add(-time.Hour), new(counting))
	if err != nil {
		t.Fatal(err)
	}
	if second.Compare(first) <= 0 || first.Compare(second) >= 0 || first.Compare(first) != 0 {
		t.Errorf("versions %v and %v are in the wrong order", first, second)
	}
	tie := manifest.Version{Time: first.Time, Tie: [16]byte{0xff}}
	if tie.Compare(first) <= 0 {
		t.Error("of two versions with the same time, the larger tie-breaker doesn't win")
	}
}

// golden returns the name and the blob of a golden file.
func golden(t testing.TB, path string) (name string, sealed []byte) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(content))
	if len(fields) != 2 {
		t.Fatalf("%s has %d fields, want name and blob", path, len(fields))
	}
	if sealed, err = hex.DecodeString(fields[1]); err != nil {
		t.Fatal(err)
	}
	return fields[0], sealed
}

// TestVectors holds the format still: the golden files were written by the first
// version of this package that knew the format. Only the latest is still written.
func TestVectors(t *testing.T) {
	s := newSealer(t)
	m := example(3)
	unsummed := example(3)
	for i := range unsummed.Chunks {
		unsummed.Chunks[i].Sum = 0
	}
	name := s.BlobName(m.Name)
	for path, want := range map[string]*manifest.Manifest{
		"testdata/manifest-v1.hex": unsummed,
		"testdata/manifest-v2.hex": m,
	} {
		goldenName, sealed := golden(t, path)
		if got := hex.EncodeToString(name.ID[:]); got != goldenName {
			t.Errorf("%s: name %s, want %s", path, got, goldenName)
		}
		if opened, err := s.Open(name, sealed); err != nil || !reflect.DeepEqual(opened, want) {
			t.Errorf("%s: the old blob reads as %+v, %v", path, opened, err)
		}
		if want == m && !bytes.Equal(mustSeal(t, s, m), sealed) {
			t.Errorf("%s: the manifest is written as %x", path, mustSeal(t, s, m))
		}
	}
	_, sealed := golden(t, "testdata/manifest-v1.hex")
	copy(sealed, "PCmanif2")
	if _, err := s.Open(name, sealed); !errors.Is(err, manifest.ErrCorrupt) {
		t.Errorf("version 1 with the magic of version 2: error %v, want ErrCorrupt", err)
	}
}

// FuzzOpen feeds what a location might send.
func FuzzOpen(f *testing.F) {
	s := newSealer(f)
	m := example(1)
	f.Add(mustSeal(f, s, m))
	f.Add(mustSeal(f, s, &manifest.Manifest{Name: m.Name, Deleted: true}))
	_, unsummed := golden(f, "testdata/manifest-v1.hex")
	f.Add(unsummed)
	f.Add(append([]byte("PCmanif3"), unsummed[8:]...))
	f.Fuzz(func(t *testing.T, sealed []byte) {
		opened, err := s.Open(s.BlobName(m.Name), sealed)
		if err == nil && opened.Name != m.Name {
			t.Errorf("%x opened as %+v", sealed, opened)
		}
	})
}

// TestNamesInAFolder: what is in a folder of the system's own begins alike, and before
// what is not; everything else is named as ever.
func TestNamesInAFolder(t *testing.T) {
	s := newSealer(t)
	start := s.FolderStart(".powercloud/registry/")
	if start[0] != 0 || start == s.FolderStart(".powercloud/gateway/") {
		t.Errorf("folders begin with %x", start)
	}
	seen := map[[32]byte]string{}
	for name, inside := range map[string]bool{
		".powercloud/registry/a":   true,
		".powercloud/registry/b":   true,
		".powercloud/registry/a/b": true,
		".powercloud/registry/":    true,
		".powercloud/registry":     false,
		".powercloud/gateway/a":    false,
		".powercloud/registries/a": false,
		".powercloudy/registry/a":  false,
		"x/.powercloud/registry/a": false,
		"powercloud/registry/a":    false,
	} {
		id := s.BlobName(name).ID
		if bytes.HasPrefix(id[:], start[:]) != inside {
			t.Errorf("%q is %x", name, id)
		}
		if other, taken := seen[id]; taken {
			t.Errorf("%q and %q are one", name, other)
		}
		seen[id] = name
		m := &manifest.Manifest{Name: name, Deleted: true, Version: manifest.Version{Time: 5}}
		if opened, err := s.Open(s.BlobName(name), mustSeal(t, s, m)); err != nil || opened.Name != name {
			t.Errorf("%q is read as %+v, %v", name, opened, err)
		}
	}
	want, err := os.ReadFile("testdata/folder-v1.hex")
	if err != nil {
		t.Fatal(err)
	}
	name := s.BlobName(".powercloud/registry/a")
	if got := hex.EncodeToString(name.ID[:]) + "\n"; got != string(want) {
		t.Errorf("it is %s", got)
	}
}
