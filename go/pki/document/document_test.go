package document

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"powercloud.unidatum.com/go/keys"
	"powercloud.unidatum.com/go/keys/keystest"
	"powercloud.unidatum.com/go/pki"
)

func newCA(t testing.TB, cluster keystest.Cluster) *pki.CA {
	t.Helper()
	ca, err := pki.NewCA(cluster.Root(t), cluster.ID)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func sign(t testing.TB, ca *pki.CA, kind Kind, serial uint64, body string) *Document {
	t.Helper()
	d, err := Sign(ca, kind, serial, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestGolden holds the format still: the file was written by the first version of
// this package.
func TestGolden(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join("testdata", "document-v1.hex"))
	if err != nil {
		t.Error(err)
	}
	ca := newCA(t, keystest.First(t))
	if written := hex.EncodeToString(sign(t, ca, Revocations, 3, `{"nodes":[]}`).Signed()); written != strings.TrimSpace(string(golden)) {
		t.Fatalf("written %s", written)
	}
	signed, err := hex.DecodeString(strings.TrimSpace(string(golden)))
	if err != nil {
		t.Fatal(err)
	}
	d, err := Open(ca.Authority(), Revocations, signed)
	if err != nil || d.Serial != 3 || string(d.Body) != `{"nodes":[]}` || d.Cluster != keystest.First(t).ID {
		t.Errorf("read as %+v, %v", d, err)
	}
}

func TestEveryAlteredByteIsRefused(t *testing.T) {
	ca := newCA(t, keystest.First(t))
	signed := sign(t, ca, Membership, 1, "body").Signed()
	for i := range signed {
		for _, flip := range []byte{1, 0x80} {
			altered := bytes.Clone(signed)
			altered[i] ^= flip
			if _, err := Open(ca.Authority(), Membership, altered); !errors.Is(err, ErrDocument) {
				t.Errorf("byte %d altered: %v", i, err)
			}
		}
		if _, err := Open(ca.Authority(), Membership, signed[:i]); !errors.Is(err, ErrDocument) {
			t.Errorf("cut to %d bytes: %v", i, err)
		}
	}
	if _, err := Open(ca.Authority(), Membership, append(bytes.Clone(signed), 0)); !errors.Is(err, ErrDocument) {
		t.Error("a trailing byte was accepted")
	}
}

// TestSignedButRefused: that the authority has signed it is not enough.
func TestSignedButRefused(t *testing.T) {
	ca := newCA(t, keystest.First(t))
	genuine := sign(t, ca, Membership, 1, "body").Signed()
	message := genuine[:len(genuine)-ed25519.SignatureSize]
	for title, change := range map[string]func([]byte) []byte{
		"magic":        func(b []byte) []byte { b[7] = '2'; return b },
		"kind":         func(b []byte) []byte { b[8] = byte(Release); return b },
		"no kind":      func(b []byte) []byte { b[8] = 0; return b },
		"cluster":      func(b []byte) []byte { b[9] ^= 1; return b },
		"serial":       func(b []byte) []byte { clear(b[25:33]); return b },
		"size":         func(b []byte) []byte { b[36]--; return b },
		"size too big": func(b []byte) []byte { b[33] = 0xff; return b },
		"trailing":     func(b []byte) []byte { return append(b, 0) },
		"no body":      func(b []byte) []byte { return b[:fixed-1] },
	} {
		altered := change(bytes.Clone(message))
		signature, err := ca.SignDocument(altered)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Open(ca.Authority(), Membership, append(altered, signature...)); !errors.Is(err, ErrDocument) {
			t.Errorf("%s: %v", title, err)
		}
	}
	for kind := range Kind(8) {
		if _, err := Open(ca.Authority(), kind, genuine); (err == nil) != (kind == Membership) {
			t.Errorf("opened as a %s: %v", kind, err)
		}
	}
	if _, err := Open(newCA(t, keystest.Second(t)).Authority(), Membership, genuine); !errors.Is(err, ErrDocument) {
		t.Errorf("another cluster's: %v", err)
	}
}

// TestSignaturesAreKeptApart: what else the authority's key signs is no document.
func TestSignaturesAreKeptApart(t *testing.T) {
	first := keystest.First(t)
	ca := newCA(t, first)
	genuine := sign(t, ca, Membership, 1, "body").Signed()
	message := genuine[:len(genuine)-ed25519.SignatureSize]
	seed := first.Root(t).Derive(keys.PurposeAuthority)
	plain := ed25519.Sign(ed25519.NewKeyFromSeed(seed), message)
	if _, err := Open(ca.Authority(), Membership, append(bytes.Clone(message), plain...)); !errors.Is(err, ErrDocument) {
		t.Errorf("signed as certificates are: %v", err)
	}
	certificate := ca.Authority().Certificate()
	if certificate.CheckSignature(certificate.SignatureAlgorithm, message, genuine[len(message):]) == nil {
		t.Error("a document's signature is that of a certificate")
	}
}

func TestSignRefuses(t *testing.T) {
	ca := newCA(t, keystest.First(t))
	if _, err := Sign(ca, 0, 1, nil); err == nil {
		t.Error("a document of no kind was signed")
	}
	if _, err := Sign(ca, Founding+1, 1, nil); err == nil {
		t.Error("a document of an unknown kind was signed")
	}
	if _, err := Sign(ca, Membership, 0, nil); err == nil {
		t.Error("a serial of 0 was signed")
	}
	if _, err := Sign(ca, Membership, 1, make([]byte, MaxBody+1)); err == nil {
		t.Error("a body that is too large was signed")
	}
	largest, err := Sign(ca, Membership, 1<<64-1, make([]byte, MaxBody))
	if err != nil || len(largest.Signed()) != MaxSize {
		t.Errorf("the largest one: %v", err)
	}
	if _, err := Open(ca.Authority(), Membership, make([]byte, MaxSize+1)); !errors.Is(err, ErrDocument) {
		t.Error(err)
	}
}

func TestNewer(t *testing.T) {
	ca := newCA(t, keystest.First(t))
	third := sign(t, ca, Membership, 3, "a")
	if newer, err := Newer(nil, third); !newer || err != nil {
		t.Errorf("after none: %v, %v", newer, err)
	}
	if newer, err := Newer(third, sign(t, ca, Membership, 4, "a")); !newer || err != nil {
		t.Errorf("the next: %v, %v", newer, err)
	}
	if newer, err := Newer(third, sign(t, ca, Membership, 3, "a")); newer || err != nil {
		t.Errorf("the same: %v, %v", newer, err)
	}
	if newer, err := Newer(third, sign(t, ca, Membership, 2, "a")); newer || !errors.Is(err, ErrOlder) {
		t.Errorf("the one before: %v, %v", newer, err)
	}
	rival := sign(t, ca, Membership, 3, "b")
	over, overErr := Newer(third, rival)
	under, underErr := Newer(rival, third)
	if over == under || (overErr == nil) != over || (underErr == nil) != under || !errors.Is(errors.Join(overErr, underErr), ErrOlder) {
		t.Errorf("two with one serial: %v, %v; %v, %v", over, overErr, under, underErr)
	}
	if _, err := Newer(third, sign(t, ca, Release, 4, "a")); err == nil {
		t.Error("a release took the place of a membership list")
	}
	if _, err := Newer(third, sign(t, newCA(t, keystest.Second(t)), Membership, 4, "a")); err == nil {
		t.Error("another cluster's took the place")
	}
}

// FuzzOpen feeds the reader, and once more with a signature that is right, as what
// stands behind it must be strict by itself.
func FuzzOpen(f *testing.F) {
	ca := newCA(f, keystest.First(f))
	f.Add(sign(f, ca, Membership, 1, "body").Signed())
	f.Add(sign(f, ca, Revocations, 1<<63, "").Signed())
	f.Add(sign(f, newCA(f, keystest.Second(f)), Membership, 1, "body").Signed())
	f.Fuzz(func(t *testing.T, signed []byte) {
		check(t, ca, signed)
		signature, err := ca.SignDocument(signed)
		if err != nil {
			t.Fatal(err)
		}
		check(t, ca, append(bytes.Clone(signed), signature...))
	})
}

// check must see bytes refused, or read what is written the same way.
func check(t *testing.T, ca *pki.CA, signed []byte) {
	d, err := Open(ca.Authority(), Membership, signed)
	if err != nil {
		return
	}
	again, err := Sign(ca, d.Kind, d.Serial, d.Body)
	if err != nil || !bytes.Equal(again.Signed(), signed) {
		t.Errorf("%x is written otherwise (%v)", signed, err)
	}
}
