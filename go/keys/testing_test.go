package keys

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// cheap is a cost that lets a test try many passphrases.
func cheap() Argon2 { return Argon2{Memory: 32, Passes: 1, Lanes: 4} }

const testPassphrase = "correct horse battery staple"

// countingReader yields 0, 1, 2, ... 255, 0, ...: anyone can make the golden
// vectors again.
type countingReader struct{ next byte }

func (r *countingReader) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = r.next
		r.next++
	}
	return len(p), nil
}

func mustCreate(t testing.TB, rand io.Reader, passphrase string) (*Header, *Root, RecoveryKey) {
	t.Helper()
	h, root, recovery, err := create(rand, []byte(passphrase), cheap())
	if err != nil {
		t.Fatal(err)
	}
	return h, root, recovery
}

// resum puts the right checksum at the end of altered header bytes, as somebody
// who alters one on purpose would.
func resum(b []byte) []byte {
	b = bytes.Clone(b)
	if len(b) >= sha256.Size {
		body := b[:len(b)-sha256.Size]
		sum := sha256.Sum256(body)
		copy(b[len(body):], sum[:])
	}
	return b
}

// wantRoot fails unless an unlock gave this very root.
func wantRoot(t *testing.T, got *Root, err error, want *Root) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if !got.live || got.key != want.key {
		t.Fatal("unlocking gave another root key")
	}
}

// wantRefused fails unless an unlock gave no root and one of the two errors.
func wantRefused(t *testing.T, what string, got *Root, err error) {
	t.Helper()
	if got != nil || err == nil {
		t.Fatalf("%s: unlocked", what)
	}
	if err != ErrWrongKey && !errors.Is(err, ErrHeader) {
		t.Fatalf("%s: unexpected kind of error: %v", what, err)
	}
}

// requireCorpus fails a fuzz target whose seeds got lost, which would otherwise
// go unnoticed.
func requireCorpus(f *testing.F) {
	f.Helper()
	entries, err := os.ReadDir(filepath.Join("testdata", "fuzz", f.Name()))
	if err != nil || len(entries) == 0 {
		f.Fatalf("no seed corpus in testdata/fuzz/%s: %v", f.Name(), err)
	}
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func readJSON(t testing.TB, path string, v any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
