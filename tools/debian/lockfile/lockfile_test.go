package lockfile

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const hash = "2e6e2f1a0007dc43bc91c273fd36e91e40a4f1c2765a03eca68b70a42103878a"

func hello() Set {
	return Set{Name: "hello", Architecture: "amd64", Closure: true, Requested: []string{"hello"}, Packages: []Package{
		{Name: "libc6", Version: "2:1~a", Architecture: "amd64", SHA256: hash, File: "libc6_2%3a1~a_amd64.deb"},
		{Name: "hello", Version: "2.10-3", Architecture: "all", SHA256: hash, File: "hello_2.10-3_all.deb"},
	}}
}

// TestRepository reads the lock file that the build uses.
func TestRepository(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "packages.lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Parse(content); err != nil {
		t.Error(err)
	}
}

func TestParseReadsWhatMarshalWrites(t *testing.T) {
	other := hello()
	other.Name = "another"
	lock := Lock{Suite: "bookworm", Sets: []Set{hello(), other}}
	content, err := lock.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := Parse(content)
	if err != nil {
		t.Fatal(err)
	}
	if parsed.Sets[0].Name != "another" || parsed.Sets[1].Packages[0].Name != "hello" {
		t.Errorf("it is not sorted: %+v", parsed)
	}
	again, err := parsed.Marshal()
	if err != nil || !bytes.Equal(again, content) {
		t.Errorf("written again it differs (%v): %s", err, again)
	}
}

func TestParseRefuses(t *testing.T) {
	content, err := (&Lock{Suite: "bookworm", Sets: []Set{hello()}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	good := string(content)
	for name, bad := range map[string]string{
		"empty":          "",
		"trailing text":  good + "{}",
		"trailing space": good + " ",
		"unknown field":  strings.Replace(good, `"suite"`, `"extra": 1, "suite"`, 1),
		"repeated field": strings.Replace(good, `"suite": "bookworm",`, `"suite": "x", "suite": "bookworm",`, 1),
		"missing field":  strings.Replace(good, `"suite": "bookworm",`, ``, 1),
		"other case":     strings.Replace(good, `"suite"`, `"Suite"`, 1),
		"other spaces":   strings.ReplaceAll(good, "  ", "\t"),
		"short hash":     strings.Replace(good, hash, hash[1:], 1),
		"other hash":     strings.Replace(good, hash, strings.ToUpper(hash), 1),
		"other file":     strings.Replace(good, "libc6_", "../libc6_", 1),
		"not JSON":       "suite: bookworm\n",
	} {
		if bad == good {
			t.Fatalf("%s: nothing was changed", name)
		}
		if lock, err := Parse([]byte(bad)); err == nil {
			t.Errorf("%s: it was read as %+v", name, lock)
		}
	}
}

func TestMarshalRefuses(t *testing.T) {
	for want, change := range map[string]func(l *Lock){
		`"" is no code name`:                     func(l *Lock) { l.Suite = "" },
		`"../x" is no name of a set`:             func(l *Lock) { l.Sets[0].Name = "../x" },
		"the set hello is there twice":           func(l *Lock) { l.Sets = append(l.Sets, hello()) },
		`"i386" is not one of`:                   func(l *Lock) { l.Sets[0].Architecture = "i386" },
		"no package was requested":               func(l *Lock) { l.Sets[0].Requested = nil },
		"requested twice":                        func(l *Lock) { l.Sets[0].Requested = []string{"hello", "hello"} },
		"not among the packages":                 func(l *Lock) { l.Sets[0].Requested = []string{"bye"} },
		"packages that were not requested":       func(l *Lock) { l.Sets[0].Closure = false },
		"the package hello is there twice":       func(l *Lock) { l.Sets[0].Packages = append(l.Sets[0].Packages, l.Sets[0].Packages[1]) },
		"that is no name of a package":           func(l *Lock) { l.Sets[0].Packages[0].Name = "-x" },
		`"x" is no version`:                      func(l *Lock) { l.Sets[0].Packages[0].Version = "x" },
		`it is for "arm64" instead of amd64`:     func(l *Lock) { l.Sets[0].Packages[0].Architecture = "arm64" },
		`"x" is no SHA-256`:                      func(l *Lock) { l.Sets[0].Packages[0].SHA256 = "x" },
		`its file is named "../hello_1_all.deb"`: func(l *Lock) { l.Sets[0].Packages[0].File = "../hello_1_all.deb" },
	} {
		lock := Lock{Suite: "bookworm", Sets: []Set{hello()}}
		change(&lock)
		if _, err := lock.Marshal(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one with %q", err, want)
		}
	}
}

// FuzzParse reads what may be a lock file; what it accepts must be written the
// same.
func FuzzParse(f *testing.F) {
	content, err := (&Lock{Suite: "bookworm", Sets: []Set{hello()}}).Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(content)
	f.Add([]byte(`{"suite": "bookworm", "sets": null}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		lock, err := Parse(content)
		if err != nil {
			return
		}
		if again, err := lock.Marshal(); err != nil || !bytes.Equal(again, content) {
			t.Errorf("%q was read and written as %q (%v)", content, again, err)
		}
	})
}
