package chunk_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"testing"

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

// seal seals a copy of a plaintext.
func seal(s *chunk.Sealer, ref chunk.Ref, plaintext []byte) []byte {
	buffer := make([]byte, len(plaintext)+chunk.Overhead)
	copy(buffer[chunk.HeaderSize:], plaintext)
	return s.Seal(s.Name(ref), buffer, len(plaintext))
}

func TestRoundTrip(t *testing.T) {
	s := newSealer(t)
	for _, size := range []int{1, 15, 16, 17, 1000, chunk.Size - 1, chunk.Size} {
		plaintext := bytes.Repeat([]byte{0xa5, 7, byte(size)}, size/3+1)[:size]
		ref := chunk.Ref{ID: s.ID(plaintext), Generation: 3}
		sealed := seal(s, ref, plaintext)
		if len(sealed) != size+chunk.Overhead {
			t.Errorf("sealed %d bytes to %d, want %d", size, len(sealed), size+chunk.Overhead)
		}
		opened, err := s.Open(ref, sealed)
		if err != nil || !bytes.Equal(opened, plaintext) {
			t.Errorf("%d bytes didn't come back: %v", size, err)
		}
	}
}

func TestSameContentSameBytes(t *testing.T) {
	s := newSealer(t)
	ref := chunk.Ref{ID: s.ID([]byte("x"))}
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
	ref := chunk.Ref{ID: s.ID([]byte("some content"))}
	sealed := seal(s, ref, []byte("some content"))
	for i := range sealed {
		altered := bytes.Clone(sealed)
		altered[i] ^= 1
		if _, err := s.Open(ref, altered); !errors.Is(err, chunk.ErrCorrupt) {
			t.Errorf("byte %d altered: error %v, want ErrCorrupt", i, err)
		}
		if _, err := s.Open(ref, bytes.Clone(sealed[:i])); !errors.Is(err, chunk.ErrCorrupt) {
			t.Errorf("cut to %d bytes: error %v, want ErrCorrupt", i, err)
		}
	}
	if _, err := s.Open(ref, append(bytes.Clone(sealed), 0)); !errors.Is(err, chunk.ErrCorrupt) {
		t.Errorf("a byte more: error %v, want ErrCorrupt", err)
	}
}

func TestSwappedChunkIsCorrupt(t *testing.T) {
	s := newSealer(t)
	a, b := chunk.Ref{ID: s.ID([]byte("a"))}, chunk.Ref{ID: s.ID([]byte("b"))}
	if _, err := s.Open(a, seal(s, b, []byte("b"))); !errors.Is(err, chunk.ErrCorrupt) {
		t.Errorf("another chunk's blob: error %v, want ErrCorrupt", err)
	}
	later := chunk.Ref{ID: a.ID, Generation: 1}
	if _, err := s.Open(a, seal(s, later, []byte("a"))); !errors.Is(err, chunk.ErrCorrupt) {
		t.Errorf("another generation's blob: error %v, want ErrCorrupt", err)
	}
	// A chunk sealed by a program whose memory failed: authentic, but not
	// what the ID says.
	if _, err := s.Open(a, seal(s, a, []byte("b"))); !errors.Is(err, chunk.ErrCorrupt) {
		t.Errorf("content that doesn't match the ID: error %v, want ErrCorrupt", err)
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
	ref := chunk.Ref{ID: s.ID(plaintext), Generation: 2}
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
	opened, err := s.Open(ref, sealed)
	if err != nil || !bytes.Equal(opened, plaintext) {
		t.Errorf("the old blob reads as %q, %v", opened, err)
	}
}

func nameID(name blob.Name) []byte { return name.ID[:] }

func FuzzOpen(f *testing.F) {
	s := newSealer(f)
	ref := chunk.Ref{ID: s.ID([]byte("seed"))}
	f.Add(seal(s, ref, []byte("seed")))
	f.Fuzz(func(t *testing.T, sealed []byte) {
		opened, err := s.Open(ref, bytes.Clone(sealed))
		if err == nil && string(opened) != "seed" {
			t.Errorf("%x opened as %q", sealed, opened)
		}
	})
}
