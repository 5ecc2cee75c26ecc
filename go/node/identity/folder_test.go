package identity

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"powercloud.unidatum.com/go/cluster/meshkey"
	"powercloud.unidatum.com/go/keys/keystest"
	"powercloud.unidatum.com/go/pki"
	"powercloud.unidatum.com/go/pki/document"
)

// golden is the directory that the first version of this package has written.
func golden() string { return filepath.Join("testdata", "identity-v1") }

// TestGolden holds the format still.
func TestGolden(t *testing.T) {
	i := build(t, parts(t, first(t)))
	want, err := read(golden())
	if err != nil {
		t.Fatal(err)
	}
	if got := contents(t, i); !reflect.DeepEqual(got, want) {
		for name, content := range got {
			t.Errorf("%s is written %q", name, content)
		}
	}
	parsed, err := want.parse()
	if err != nil || !same(t, parsed, i) {
		t.Errorf("read as %s, %v", parsed, err)
	}
}

func TestInstall(t *testing.T) {
	folder := t.TempDir()
	if _, err := Load(folder); !errors.Is(err, ErrNone) {
		t.Errorf("before: %v", err)
	}
	if _, err := Load(filepath.Join(folder, "none")); !errors.Is(err, ErrNone) {
		t.Errorf("in no folder: %v", err)
	}
	ca := first(t)
	i := build(t, parts(t, ca))
	if _, err := Install(filepath.Join(folder, "none"), i); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in no folder: %v", err)
	}
	kept := install(t, folder, i)
	if now, _ := kept.Current(); now != i || !same(t, load(t, folder), i) {
		t.Error("another identity was installed")
	}
	other := parts(t, newCA(t, keystest.Second(t)))
	if _, err := Install(folder, build(t, other)); !errors.Is(err, ErrExists) || err.Error() != "node is already enrolled in a cluster" {
		t.Errorf("twice: %v", err)
	}
	if !same(t, load(t, folder), i) {
		t.Error("the second one took the first one's place")
	}
	// As after enrollment.
	p := parts(t, ca)
	few := build(t, Parts{Key: p.Key, Certificate: p.Certificate, Authority: p.Authority, MeshKey: p.MeshKey})
	second := t.TempDir()
	install(t, second, few)
	if got := load(t, second); !same(t, got, few) || got.Membership != nil || got.Name() != "" {
		t.Errorf("%+v", got)
	}
	for folder, count := range map[string]int{folder: 8, second: 4} {
		entries, err := os.ReadDir(filepath.Join(folder, directoryName))
		if err != nil || len(entries) != count {
			t.Errorf("the files are %v, %v", entries, err)
		}
		for _, entry := range entries {
			if info, err := entry.Info(); err != nil || info.Mode() != 0o600 {
				t.Errorf("%s has mode %s, %v", entry.Name(), info.Mode(), err)
			}
		}
		if info, err := os.Stat(filepath.Join(folder, directoryName)); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("the directory has mode %s, %v", info.Mode(), err)
		}
	}
}

// TestModesAfterReplacing: a renewed file is as private as the first.
func TestModesAfterReplacing(t *testing.T) {
	ca, folder := first(t), t.TempDir()
	p := parts(t, ca)
	kept := install(t, folder, build(t, p))
	if _, err := kept.ReplaceMembership(members(t, ca, 9, "home-1", p.Key.ID())); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(kept.directory, membershipFile)); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %s, %v", info.Mode(), err)
	}
}

// TestExpiredIsLoaded, as it can be renewed.
func TestExpiredIsLoaded(t *testing.T) {
	ca, folder := first(t), t.TempDir()
	p := parts(t, ca)
	p.Certificate = certificate(t, ca, p.Key, issued().AddDate(-9, 0, 0)).Raw
	install(t, folder, build(t, p))
	if err := load(t, folder).Check(issued()); !errors.Is(err, pki.ErrExpired) {
		t.Error(err)
	}
}

func TestDamage(t *testing.T) {
	ca, other := first(t), newCA(t, keystest.Second(t))
	p := parts(t, ca)
	good := contents(t, build(t, p))
	foreign := contents(t, build(t, parts(t, other)))
	stranger := newKeyOf(t, 9)
	strangerKey, err := stranger.marshal()
	if err != nil {
		t.Fatal(err)
	}
	mesh := string(good[meshKeyFile])
	for title, change := range map[string]func(files){
		"no key":                     func(f files) { delete(f, keyFile) },
		"no certificate":             func(f files) { delete(f, certificateFile) },
		"no authority":               func(f files) { delete(f, authorityFile) },
		"no mesh key":                func(f files) { delete(f, meshKeyFile) },
		"nothing":                    func(f files) { clear(f) },
		"empty key":                  func(f files) { f[keyFile] = nil },
		"empty membership":           func(f files) { f[membershipFile] = nil },
		"empty volume":               func(f files) { f[volumeFile] = nil },
		"another key":                func(f files) { f[keyFile] = strangerKey },
		"another node's certificate": func(f files) { f[certificateFile] = pki.MarshalCertificate(certificate(t, ca, stranger, issued())) },
		"another cluster's":          func(f files) { f[certificateFile] = foreign[certificateFile] },
		"another authority":          func(f files) { f[authorityFile] = foreign[authorityFile] },
		"another's membership":       func(f files) { f[membershipFile] = foreign[membershipFile] },
		"another's revocations":      func(f files) { f[revocationsFile] = foreign[revocationsFile] },
		"lists swapped": func(f files) {
			f[membershipFile], f[revocationsFile] = f[revocationsFile], f[membershipFile]
		},
		"mesh key without line end": func(f files) { f[meshKeyFile] = []byte(strings.TrimSuffix(mesh, "\n")) },
		"mesh key in hexadecimal":   func(f files) { f[meshKeyFile] = []byte(strings.Repeat("01", 32) + "\n") },
		"mesh key in two lines":     func(f files) { f[meshKeyFile] = []byte(mesh[:8] + "\n" + mesh[8:]) },
		"mesh key with a long end":  func(f files) { f[meshKeyFile] = []byte(mesh + "\n") },
		"mesh key of 33 bytes":      func(f files) { f[meshKeyFile] = []byte(base64.StdEncoding.EncodeToString(make([]byte, 33)) + "\n") },
		"mesh key of zeros":         func(f files) { f[meshKeyFile] = []byte(base64.StdEncoding.EncodeToString(make([]byte, 32)) + "\n") },
		"volume of zeros":           func(f files) { f[volumeFile] = []byte(strings.Repeat("0", 32) + "\n") },
		"volume in upper case":      func(f files) { f[volumeFile] = []byte(strings.Repeat("AB", 16) + "\n") },
		"volume without line end":   func(f files) { f[volumeFile] = []byte(strings.Repeat("ab", 16)) },
		"name without a line end":   func(f files) { f[nameFile] = []byte("home-1") },
		"no name":                   func(f files) { f[nameFile] = []byte("\n") },
		"another's name":            func(f files) { f[nameFile] = []byte("Home 1\n") },
		"a large key":               func(f files) { f[keyFile] = make([]byte, maxSmall+1) },
		"a large list":              func(f files) { f[membershipFile] = make([]byte, document.MaxSize+1) },
	} {
		folder := t.TempDir()
		f := maps.Clone(good)
		change(f)
		if err := fill(filepath.Join(folder, directoryName), f); err != nil {
			t.Fatal(err)
		}
		if k, err := Load(folder); !errors.Is(err, ErrDamaged) || errors.Is(err, ErrNone) {
			t.Errorf("%s: %v, %v", title, k, err)
		} else if strings.Contains(err.Error(), mesh[:8]) {
			t.Errorf("%s: a secret is shown: %v", title, err)
		}
		if _, err := Install(folder, build(t, p)); !errors.Is(err, ErrExists) {
			t.Errorf("%s: something was put in its place: %v", title, err)
		}
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, directoryName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(folder); !errors.Is(err, ErrDamaged) {
		t.Errorf("a file: %v", err)
	}
	// What can't be read isn't damaged, and surely not missing.
	if _, err := Load(filepath.Join(folder, directoryName, "below")); err == nil || errors.Is(err, ErrNone) || errors.Is(err, ErrDamaged) {
		t.Errorf("below a file: %v", err)
	}
}

// TestFlippedBits: no bit of what is signed or belongs together can change unnoticed.
func TestFlippedBits(t *testing.T) {
	p := parts(t, first(t))
	good := contents(t, build(t, p))
	for _, name := range []string{keyFile, certificateFile, authorityFile, membershipFile, revocationsFile} {
		for at := range good[name] {
			f := maps.Clone(good)
			f[name] = bytes.Clone(good[name])
			f[name][at] ^= 1 << (at % 8)
			if i, err := f.parse(); !errors.Is(err, ErrDamaged) {
				t.Errorf("%s, byte %d: %v, %v", name, at, i, err)
			}
		}
	}
}

// TestLeftovers: what was cut short is removed.
func TestLeftovers(t *testing.T) {
	folder := t.TempDir()
	p := parts(t, first(t))
	i := build(t, p)
	pending := filepath.Join(folder, pendingName)
	leave := func() {
		if err := fill(pending, files{keyFile: nil, "something": nil}); err != nil {
			t.Fatal(err)
		}
	}
	leave()
	if _, err := Load(folder); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
	gone := func() {
		t.Helper()
		if _, err := os.Lstat(pending); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("something is left: %v", err)
		}
	}
	gone()
	leave()
	kept := install(t, folder, i)
	gone()
	leave()
	temporary := filepath.Join(kept.directory, ".node.crt-0123456789abcdef.tmp")
	if err := os.WriteFile(temporary, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !same(t, load(t, folder), i) {
		t.Error("another identity is there")
	}
	gone()
	if _, err := os.Lstat(temporary); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something is left: %v", err)
	}
}

// FuzzFiles must refuse, or read what is written the same way.
func FuzzFiles(f *testing.F) {
	names := []string{keyFile, certificateFile, authorityFile, meshKeyFile, volumeFile, nameFile, membershipFile, revocationsFile}
	p := parts(f, first(f))
	all := contents(f, build(f, p))
	few := contents(f, build(f, Parts{Key: p.Key, Certificate: p.Certificate, Authority: p.Authority, MeshKey: p.MeshKey}))
	// Which of the files are there is in the bits of the first argument.
	seed := func(c files) (there uint8, texts [8][]byte) {
		for i, name := range names {
			if content, found := c[name]; found {
				there |= 1 << i
				texts[i] = content
			}
		}
		return there, texts
	}
	there, s := seed(all)
	f.Add(there, s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7])
	there, s = seed(few)
	f.Add(there, s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7])
	f.Fuzz(func(t *testing.T, there uint8, a, b, c, d, e, g, h, i []byte) {
		given := files{}
		for n, text := range [][]byte{a, b, c, d, e, g, h, i} {
			if there&(1<<n) != 0 {
				given[names[n]] = text
			}
		}
		parsed, err := given.parse()
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Error(err)
			}
			return
		}
		again := contents(t, parsed)
		if !slices.Equal(slices.Sorted(maps.Keys(again)), slices.Sorted(maps.Keys(given))) {
			t.Errorf("other files are written")
		}
		for name, content := range again {
			if !bytes.Equal(content, given[name]) {
				t.Errorf("%s: %q is written %q", name, given[name], content)
			}
		}
	})
}

// TestStrangersFilesAreLeft: what else is in the directory is no part of an identity.
func TestStrangersFilesAreLeft(t *testing.T) {
	folder := t.TempDir()
	p := parts(t, first(t))
	kept := install(t, folder, build(t, p))
	path := filepath.Join(kept.directory, "note")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if i := load(t, folder); i.Name() != "home-1" {
		t.Errorf("%s", i)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Error(err)
	}
}

// TestMeshKeyIsAsWGHasIt: the file is what "wg genkey" of wireguard-tools prints.
func TestMeshKeyIsAsWGHasIt(t *testing.T) {
	var k meshkey.Private
	for i := range k {
		k[i] = byte(i)
	}
	const want = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"
	text := formatMeshKey(&k)
	var read meshkey.Private
	if err := parseMeshKey(&read, text); err != nil || string(text) != want || read != k {
		t.Errorf("%q, %v", text, err)
	}
	if err := parseMeshKey(&read, []byte(strings.Replace(want, "8=", "9=", 1))); err == nil {
		t.Error("bits after the last byte are read")
	}
}

// TestFirstName: before there is a membership list, the name is that of the enrollment.
func TestFirstName(t *testing.T) {
	p := parts(t, first(t))
	p.Name, p.Membership, p.Revocations = "colo-1", nil, nil
	folder := t.TempDir()
	kept := install(t, folder, build(t, p))
	if got := load(t, folder).Name(); got != "colo-1" {
		t.Errorf("the name is %q", got)
	}
	if _, err := kept.ReplaceMembership(parts(t, first(t)).Membership); err != nil {
		t.Fatal(err)
	}
	if got := load(t, folder).Name(); got != "home-1" {
		t.Errorf("with a list, the name is %q", got)
	}
}
