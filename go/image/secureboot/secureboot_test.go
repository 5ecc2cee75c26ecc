package secureboot

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/go/image/uki"
	"powercloud.unidatum.com/go/image/uki/ukitest"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// image returns a small image.
func image(t *testing.T) []byte {
	t.Helper()
	content, err := uki.Assemble(uki.Parts{
		Architecture: "amd64", Version: "dev", CommandLine: "panic=10", Initramfs: []byte("initramfs"),
		Stub: ukitest.Stub("amd64"), Kernel: ukitest.Kernel("amd64", "6.1.0"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// files makes a key and returns its key file and its certificate file.
func files(t *testing.T) (key, certificate []byte) {
	t.Helper()
	folder := t.TempDir()
	if err := Generate(folder, now); err != nil {
		t.Fatal(err)
	}
	return read(t, folder, KeyFile), read(t, folder, CertificateFile)
}

func read(t *testing.T, folder, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// pair makes a key.
func pair(t *testing.T) *Pair {
	t.Helper()
	key, certificate := files(t)
	p, err := ParsePair(key, certificate, now)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestSign(t *testing.T) {
	p, content := pair(t), image(t)
	signed, err := Sign(content, p)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Sign(content, p); err != nil || !bytes.Equal(signed, again) {
		t.Errorf("the same image and key gave other bytes (%v)", err)
	}
	if err := Verify(signed, p.Certificate()); err != nil {
		t.Error(err)
	}
	read, err := uki.Read(bytes.NewReader(signed), int64(len(signed)))
	if err != nil || !read.Signed {
		t.Errorf("it reads as %+v, %v", read, err)
	}
	if err := Verify(signed, pair(t).Certificate()); err == nil {
		t.Error("another certificate passed")
	}
	if err := Verify(content, p.Certificate()); err == nil {
		t.Error("an image that isn't signed passed")
	}
	if _, err := Sign(signed, p); err == nil || !strings.Contains(err.Error(), "has a signature already") {
		t.Errorf("signed twice: %v", err)
	}
}

// TestAltered changes an image's bytes, each in turn but for those that no
// signature is of, and expects that the signature is no longer right.
func TestAltered(t *testing.T) {
	p, content := pair(t), image(t)
	signed, err := Sign(content, p)
	if err != nil {
		t.Fatal(err)
	}
	const optional = 128 + 24
	for at := 0; at < len(content); at += 3 {
		isChecksum := at >= optional+64 && at < optional+68
		isDirectory := at >= optional+144 && at < optional+152
		if isChecksum || isDirectory {
			continue
		}
		signed[at] ^= 1
		if Verify(signed, p.Certificate()) == nil {
			t.Errorf("an image passed with byte %d changed", at)
		}
		signed[at] ^= 1
	}
	if err := Verify(signed, p.Certificate()); err != nil {
		t.Error(err)
	}
}

func TestGenerate(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "new", "powercloud-sb")
	if err := Generate(folder, now); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 3 {
		t.Errorf("the folder has %v, %v", entries, err)
	}
	for _, name := range []string{".", KeyFile, CertificateFile, EnrolFile} {
		info, err := os.Stat(filepath.Join(folder, name))
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %v (%v)", name, info.Mode(), err)
		}
	}
	block, _ := pem.Decode(read(t, folder, CertificateFile))
	if !bytes.Equal(block.Bytes, read(t, folder, EnrolFile)) {
		t.Error("db.cer and db.crt are two certificates")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if err := certificate.CheckSignature(certificate.SignatureAlgorithm, certificate.RawTBSCertificate, certificate.Signature); err != nil {
		t.Error(err)
	}
	if key := certificate.PublicKey.(*rsa.PublicKey); key.N.BitLen() != 2048 {
		t.Errorf("the key has %d bits", key.N.BitLen())
	}
	if want := time.Date(2046, 11, 30, 12, 0, 0, 0, time.UTC); !certificate.NotAfter.Equal(want) || !certificate.NotBefore.Equal(now) {
		t.Errorf("it is valid from %s to %s", certificate.NotBefore, certificate.NotAfter)
	}
}

func TestGenerateOverwritesNoKey(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{KeyFile, CertificateFile} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Generate(folder, now); err == nil || !strings.Contains(err.Error(), KeyFile+" exists already") {
		t.Errorf("it says %v", err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 2 || string(read(t, folder, KeyFile)) != "mine" || string(read(t, folder, CertificateFile)) != "mine" {
		t.Errorf("the folder has %v, %v", entries, err)
	}
}

// TestGenerateAfterARunThatWasCutOff begins with all that such a run can leave.
func TestGenerateAfterARunThatWasCutOff(t *testing.T) {
	for _, left := range [][]string{
		{".db.cer.123"},
		{EnrolFile},
		{EnrolFile, ".db.crt.123"},
		{EnrolFile, CertificateFile},
		{EnrolFile, CertificateFile, ".db.key.4567"},
	} {
		folder := t.TempDir()
		for _, name := range append(left, "notes.txt") {
			if err := os.WriteFile(filepath.Join(folder, name), []byte("left"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := Generate(folder, now); err != nil {
			t.Errorf("after %q: %v", left, err)
			continue
		}
		p, err := ParsePair(read(t, folder, KeyFile), read(t, folder, CertificateFile), now)
		if err != nil || !bytes.Equal(p.Certificate().Raw, read(t, folder, EnrolFile)) {
			t.Errorf("after %q: the files don't belong together, %v", left, err)
		}
		entries, err := os.ReadDir(folder)
		if err != nil || len(entries) != 4 || string(read(t, folder, "notes.txt")) != "left" {
			t.Errorf("after %q the folder has %v, %v", left, entries, err)
		}
	}
}

func TestGenerateAlone(t *testing.T) {
	folder := t.TempDir()
	unlock, err := lock(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := Generate(folder, now); err == nil || !strings.Contains(err.Error(), "in use by another run") {
		t.Errorf("beside another run: %v", err)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	if err := Generate(folder, now); err != nil {
		t.Error(err)
	}
}

func TestWriteWholeLeavesNothingBehind(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, KeyFile), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeWhole(folder, KeyFile, []byte("other"), os.Link); err == nil {
		t.Error("it was overwritten")
	}
	var names []string
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if !entry.IsDir() {
			names = append(names, entry.Name())
		}
		return err
	})
	if err != nil || len(names) != 1 || string(read(t, folder, KeyFile)) != "mine" {
		t.Errorf("the folder has %q, %v", names, err)
	}
}

func TestPairRefused(t *testing.T) {
	key, certificate := files(t)
	_, other := files(t)
	for _, test := range []struct {
		want             string
		key, certificate []byte
		now              time.Time
	}{
		{"don't belong together", key, other, now},
		{"valid from 2026-11-30 to 2046-11-30, not now", key, certificate, now.AddDate(20, 0, 1)},
		{"valid from 2026-11-30 to 2046-11-30, not now", key, certificate, now.Add(-time.Hour)},
		{"the Secure Boot key is not in PEM form", []byte("garbage"), certificate, now},
		{"the Secure Boot key is in a file with a CERTIFICATE", certificate, certificate, now},
		{"the Secure Boot certificate is in a file with a PRIVATE KEY", key, key, now},
		{"the Secure Boot certificate is not in PEM form", key, nil, now},
		{"the Secure Boot key is followed by something else", append(bytes.Clone(key), 'x'), certificate, now},
		{"is no X.509 certificate", key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}), now},
		{"is no private key in", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")}), certificate, now},
		{"is encrypted", pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte("x")}), certificate, now},
		{"the Secure Boot key is no RSA key", ellipticKey(t), certificate, now},
		{"has more than 65536 bytes", key, make([]byte, MaxFileSize+1), now},
	} {
		_, err := ParsePair(test.key, test.certificate, test.now)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %q", err, test.want)
		}
	}
}

// ellipticKey returns a key that firmware has no use for.
func ellipticKey(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func FuzzParsePair(f *testing.F) {
	f.Add([]byte("-----BEGIN PRIVATE KEY-----\neA==\n-----END PRIVATE KEY-----\n"), []byte("-----BEGIN CERTIFICATE-----\neA==\n-----END CERTIFICATE-----\n"))
	f.Add([]byte("garbage"), []byte(""))
	f.Fuzz(func(t *testing.T, key, certificate []byte) {
		_, err := ParsePair(key, certificate, now)
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("the error has several lines: %v", err)
		}
	})
}
