package chunk_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/keys"
	"powercloud.unidatum.com/go/store/chunk"
)

// newSealer returns a Sealer under the root key that consists of the bytes 0
// to 31.
func newSealer(t testing.TB) *chunk.Sealer {
	t.Helper()
	fixed := make([]byte, 32)
	for i := range fixed {
		fixed[i] = byte(i)
	}
	root, err := keys.NewRoot(bytes.NewReader(fixed))
	if err != nil {
		t.Fatal(err)
	}
	s, err := chunk.NewSealer(root)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// seal seals a plaintext.
func seal(s *chunk.Sealer, ref chunk.Ref, plaintext []byte) []byte {
	return s.Seal(nil, s.Name(ref), plaintext)
}

func TestRoundTrip(t *testing.T) {
	s := newSealer(t)
	for _, size := range []int{1, 15, 16, 17, 1000, chunk.Size - 1, chunk.Size} {
		plaintext := bytes.Repeat([]byte{0xa5, 7, byte(size)}, size/3+1)[:size]
		ref := s.Identify(plaintext)
		ref.Generation = 3
		sealed := seal(s, ref, plaintext)
		if len(sealed) != size+chunk.Overhead {
			t.Errorf("sealed %d bytes to %d, want %d", size, len(sealed), size+chunk.Overhead)
		}
		opened, err := s.Open(nil, ref, sealed)
		if err != nil || !bytes.Equal(opened, plaintext) {
			t.Errorf("%d bytes didn't come back: %v", size, err)
		}
	}
}

// TestMemory seals and opens in place and in memory that is handed in.
func TestMemory(t *testing.T) {
	s := newSealer(t)
	plaintext := bytes.Repeat([]byte("content "), 1000)
	ref := s.Identify(plaintext)
	want := seal(s, ref, plaintext)

	buffer := make([]byte, chunk.MaxBlob)
	if got := s.Seal(buffer, s.Name(ref), plaintext); &got[0] != &buffer[0] || !bytes.Equal(got, want) {
		t.Error("a chunk that was sealed to a buffer differs, or isn't in it")
	}
	clear(buffer)
	inPlace := buffer[chunk.HeaderSize:][:copy(buffer[chunk.HeaderSize:], plaintext)]
	sealed := s.Seal(buffer, s.Name(ref), inPlace)
	if &sealed[0] != &buffer[0] || !bytes.Equal(sealed, want) {
		t.Error("a chunk that was sealed in place differs, or isn't there")
	}

	other := make([]byte, 0, len(plaintext))
	opened, err := s.Open(other, ref, sealed)
	if err != nil || &opened[0] != &other[:1][0] || !bytes.Equal(opened, plaintext) {
		t.Errorf("a chunk that was opened to a buffer differs, or isn't in it: %v", err)
	}
	if !bytes.Equal(sealed, want) {
		t.Error("opening to a buffer changed the blob")
	}
	opened, err = s.Open(nil, ref, sealed)
	if err != nil || &opened[0] != &sealed[chunk.HeaderSize] || !bytes.Equal(opened, plaintext) {
		t.Errorf("a chunk that was opened in place differs, or isn't there: %v", err)
	}
}

func TestRead(t *testing.T) {
	s := newSealer(t)
	content := bytes.Repeat([]byte{1, 2, 3}, chunk.Size/3+10)
	buf := make([]byte, chunk.Size)
	for _, c := range []struct {
		size, want int
		err        error
	}{
		{0, 0, io.EOF},
		{1, 1, io.ErrUnexpectedEOF},
		{256 << 10, 256 << 10, io.ErrUnexpectedEOF},
		{chunk.Size - 1, chunk.Size - 1, io.ErrUnexpectedEOF},
		{chunk.Size, chunk.Size, nil},
		{chunk.Size + 1, chunk.Size, nil},
	} {
		n, ref, err := s.Read(iotest.HalfReader(bytes.NewReader(content[:c.size])), buf)
		if n != c.want || !errors.Is(err, c.err) {
			t.Errorf("of %d bytes, %d were read, %v; want %d, %v", c.size, n, err, c.want, c.err)
		}
		if !bytes.Equal(buf[:n], content[:n]) || ref != s.Identify(content[:n]) {
			t.Errorf("of %d bytes, others were read, or the reference is wrong", c.size)
		}
	}
	broken := errors.New("broken")
	r := io.MultiReader(bytes.NewReader(content[:300<<10]), iotest.ErrReader(broken))
	if n, _, err := s.Read(r, buf); n != 300<<10 || !errors.Is(err, broken) {
		t.Errorf("a reader that fails after 300 KiB: %d bytes, %v", n, err)
	}
}

func TestSameContentSameBytes(t *testing.T) {
	s := newSealer(t)
	ref := s.Identify([]byte("x"))
	if !bytes.Equal(seal(s, ref, []byte("x")), seal(s, ref, []byte("x"))) {
		t.Error("sealing the same chunk twice gave different bytes")
	}
	other := chunk.Ref{ID: ref.ID, Generation: 1}
	if s.Name(other) == s.Name(ref) {
		t.Error("two generations have the same name")
	}
	if bytes.Contains(seal(s, other, []byte("x")), seal(s, ref, []byte("x"))[chunk.HeaderSize:]) {
		t.Error("two generations have the same ciphertext")
	}
}

func TestEveryAlteredByteIsCorrupt(t *testing.T) {
	s := newSealer(t)
	ref := s.Identify([]byte("some content"))
	sealed := seal(s, ref, []byte("some content"))
	for i := range sealed {
		altered := bytes.Clone(sealed)
		altered[i] ^= 1
		if _, err := s.Open(nil, ref, altered); !errors.Is(err, chunk.ErrCorrupt) {
			t.Errorf("byte %d altered: error %v, want ErrCorrupt", i, err)
		}
		if _, err := s.Open(nil, ref, bytes.Clone(sealed[:i])); !errors.Is(err, chunk.ErrCorrupt) {
			t.Errorf("cut to %d bytes: error %v, want ErrCorrupt", i, err)
		}
	}
	if _, err := s.Open(nil, ref, append(bytes.Clone(sealed), 0)); !errors.Is(err, chunk.ErrCorrupt) {
		t.Errorf("a byte more: error %v, want ErrCorrupt", err)
	}
}

func TestSwappedChunkIsCorrupt(t *testing.T) {
	s := newSealer(t)
	a, b := s.Identify([]byte("a")), s.Identify([]byte("b"))
	if _, err := s.Open(nil, a, seal(s, b, []byte("b"))); !errors.Is(err, chunk.ErrCorrupt) {
		t.Errorf("another chunk's blob: error %v, want ErrCorrupt", err)
	}
	later := chunk.Ref{ID: a.ID, Generation: 1}
	if _, err := s.Open(nil, a, seal(s, later, []byte("a"))); !errors.Is(err, chunk.ErrCorrupt) {
		t.Errorf("another generation's blob: error %v, want ErrCorrupt", err)
	}
}

// TestDamagedInMemory opens chunks that were sealed by a program whose memory failed:
// they are authentic, but not what the reference says, or the reference itself is off.
func TestDamagedInMemory(t *testing.T) {
	s := newSealer(t)
	content, damaged := []byte("content"), []byte("contend")
	if sum := s.Identify([]byte("123456789")).Sum; sum != 0xe3069283 { // RFC 3720's check value.
		t.Errorf("the CRC-32C of 123456789 is %#x", sum)
	}
	summed := s.Identify(content)
	unsummed, wrong := summed, summed
	unsummed.Sum, wrong.Sum = 0, summed.Sum^1
	for title, ref := range map[string]chunk.Ref{"sum": summed, "no sum": unsummed, "wrong sum": wrong} {
		if opened, err := s.Open(nil, ref, seal(s, ref, content)); err != nil || !bytes.Equal(opened, content) {
			t.Errorf("%s: what was hashed reads as %q, %v", title, opened, err)
		}
		if _, err := s.Open(nil, ref, seal(s, ref, damaged)); !errors.Is(err, chunk.ErrCorrupt) {
			t.Errorf("%s: what was damaged after hashing: error %v, want ErrCorrupt", title, err)
		}
	}
	// Several bits of the ID failed, before the name was computed: the content is what
	// the sum says.
	renamed := summed
	renamed.ID[3] ^= 6
	if opened, err := s.Open(nil, renamed, seal(s, renamed, content)); err != nil || !bytes.Equal(opened, content) {
		t.Errorf("a damaged ID: the content reads as %q, %v", opened, err)
	}
}

// TestVector holds the format still: the golden file was written by the first
// version of this package.
func TestVector(t *testing.T) {
	s := newSealer(t)
	golden, err := os.ReadFile("testdata/chunk-v1.hex")
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(golden))
	if len(fields) != 3 {
		t.Fatalf("the vector has %d fields, want name, plaintext, blob", len(fields))
	}
	plaintext, err := hex.DecodeString(fields[1])
	if err != nil {
		t.Fatal(err)
	}
	ref := s.Identify(plaintext)
	ref.Generation = 2
	if got := hex.EncodeToString(nameID(s.Name(ref))); got != fields[0] {
		t.Errorf("name %s, want %s", got, fields[0])
	}
	if got := hex.EncodeToString(seal(s, ref, plaintext)); got != fields[2] {
		t.Errorf("blob %s, want %s", got, fields[2])
	}
	sealed, err := hex.DecodeString(fields[2])
	if err != nil {
		t.Fatal(err)
	}
	opened, err := s.Open(nil, ref, sealed)
	if err != nil || !bytes.Equal(opened, plaintext) {
		t.Errorf("the old blob reads as %q, %v", opened, err)
	}
}

func nameID(name blob.Name) []byte { return name.ID[:] }

func FuzzOpen(f *testing.F) {
	s := newSealer(f)
	ref := s.Identify([]byte("seed"))
	f.Add(seal(s, ref, []byte("seed")))
	f.Fuzz(func(t *testing.T, sealed []byte) {
		opened, err := s.Open(nil, ref, bytes.Clone(sealed))
		if err == nil && string(opened) != "seed" {
			t.Errorf("%x opened as %q", sealed, opened)
		}
	})
}
