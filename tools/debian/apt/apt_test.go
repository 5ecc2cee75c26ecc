package apt

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"powercloud.unidatum.com/tools/debian/lockfile"
)

// A stanza is a package in the index of a made-up archive.
type stanza struct{ name, version, architecture, depends string }

// hash is the SHA-256 that the made-up archive states for a package.
func (s stanza) hash() string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(s.name+s.version)))
}

// archive has APT use, instead of the machine's sources, an archive of three
// suites on disk: the main one, its updates and its security fixes.
func archive(t *testing.T, main, updates, security []stanza) {
	t.Helper()
	if _, err := exec.LookPath("apt-get"); err != nil {
		t.Skip("there is no apt-get here")
	}
	root := t.TempDir()
	var sources strings.Builder
	for _, suite := range []struct {
		name, label string
		packages    []stanza
	}{{"stable", "Debian", main}, {"stable-updates", "Debian", updates}, {"stable-security", "Debian-Security", security}} {
		folder := filepath.Join(root, "dists", suite.name)
		release := fmt.Sprintf("Origin: Debian\nLabel: %s\nCodename: %s\nArchitectures: amd64 arm64\nComponents: main\nSHA256:\n", suite.label, suite.name)
		for _, architecture := range []string{"amd64", "arm64"} {
			content := index(suite.packages, architecture)
			name := "main/binary-" + architecture + "/Packages"
			write(t, filepath.Join(folder, name), content)
			release += fmt.Sprintf(" %x %d %s\n", sha256.Sum256([]byte(content)), len(content), name)
		}
		write(t, filepath.Join(folder, "Release"), release)
		fmt.Fprintf(&sources, "deb [trusted=yes] file:%s %s main\n", root, suite.name)
	}
	write(t, filepath.Join(root, "sources.list"), sources.String())
	config := filepath.Join(root, "apt.conf")
	write(t, config, fmt.Sprintf("Dir::Etc::sourcelist \"%s/sources.list\";\nDir::Etc::sourceparts \"/dev/null\";\n", root))
	t.Setenv("APT_CONFIG", config)
}

func index(packages []stanza, architecture string) string {
	var b strings.Builder
	for _, p := range packages {
		if p.architecture != architecture && p.architecture != "all" {
			continue
		}
		fmt.Fprintf(&b, "Package: %s\nVersion: %s\nArchitecture: %s\nMaintainer: x\n", p.name, p.version, p.architecture)
		if p.depends != "" {
			fmt.Fprintf(&b, "Depends: %s\n", p.depends)
		}
		_, upstream, found := strings.Cut(p.version, ":")
		if !found {
			upstream = p.version
		}
		fmt.Fprintf(&b, "Filename: pool/%s_%s_%s.deb\nSize: 10\nSHA256: %s\n\n", p.name, upstream, p.architecture, p.hash())
	}
	return b.String()
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestResolve(t *testing.T) {
	tool := stanza{"tool", "1:2.0-1", "amd64", "library, data"}
	library := stanza{"library", "1.0", "amd64", ""}
	data := stanza{"data", "3~rc1", "all", ""}
	foreign := stanza{"tool", "1:2.0-1", "arm64", "data"}
	archive(t,
		[]stanza{tool, library, data, foreign},
		[]stanza{{"data", "4", "all", ""}},
		[]stanza{{"library", "1.0+deb1", "amd64", ""}, {"fresh", "1", "amd64", ""}},
	)
	want := func(stanzas ...stanza) []lockfile.Package {
		var packages []lockfile.Package
		for _, s := range stanzas {
			file := lockfile.FileName(s.name, s.version, s.architecture)
			packages = append(packages, lockfile.Package{
				Name: s.name, Version: s.version, Architecture: s.architecture, SHA256: s.hash(), File: file,
			})
		}
		return packages
	}
	for _, test := range []struct {
		name         string
		architecture string
		suite        string
		names        []string
		closure      bool
		want         []lockfile.Package
		err          string
	}{
		{name: "closure of the main suite", architecture: "amd64", names: []string{"tool"}, closure: true, want: want(data, library, tool)},
		{name: "alone", architecture: "amd64", names: []string{"tool"}, want: want(tool)},
		{name: "older than in security", architecture: "amd64", names: []string{"library"}, want: want(library)},
		{name: "for all architectures", architecture: "arm64", names: []string{"data"}, want: want(data)},
		{name: "foreign closure", architecture: "arm64", names: []string{"tool"}, closure: true, want: want(data, foreign)},
		{name: "only in security", architecture: "amd64", names: []string{"fresh"}, err: "package fresh as it has no candidate"},
		{name: "only in security, closure", architecture: "amd64", names: []string{"fresh"}, closure: true, err: "'fresh' has no installation candidate"},
		{name: "in no suite", architecture: "amd64", names: []string{"nothing"}, err: "E: Unable to locate package nothing"},
		{name: "a version", architecture: "amd64", names: []string{"fresh=1"}, closure: true, err: `"fresh=1" is no name of a Debian package`},
		{name: "an option", architecture: "amd64", names: []string{"-y"}, err: `"-y" is no name of a Debian package`},
		{name: "another suite", architecture: "amd64", suite: "oldstable", names: []string{"tool"}, closure: true, err: "find the packages in the suite oldstable"},
	} {
		t.Run(test.name, func(t *testing.T) {
			suite := "stable"
			if test.suite != "" {
				suite = test.suite
			}
			r, err := New(context.Background(), t.TempDir(), test.architecture, suite)
			if err != nil {
				t.Fatal(err)
			}
			got, err := r.Resolve(context.Background(), test.names, test.closure)
			slices.SortFunc(got, func(a, b lockfile.Package) int { return strings.Compare(a.Name, b.Name) })
			if test.err == "" && (err != nil || !slices.Equal(got, test.want)) {
				t.Errorf("got %v (%v), want %v", got, err, test.want)
			}
			if test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err) || strings.Contains(err.Error(), "\n")) {
				t.Errorf("got %v and the error %v, want one of one line with %q", got, err, test.err)
			}
		})
	}
}

func TestParseURIs(t *testing.T) {
	const hash = "2e6e2f1a0007dc43bc91c273fd36e91e40a4f1c2765a03eca68b70a42103878a"
	got, err := parseURIs([]byte("Reading...\n'http://h/a_2_amd64.deb' a_1%3a2_amd64.deb 5 SHA256:" + hash + "\n"))
	want := []lockfile.Package{{Name: "a", Version: "1:2", Architecture: "amd64", SHA256: hash, File: "a_1%3a2_amd64.deb"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v (%v), want %v", got, err, want)
	}
	for _, bad := range []string{"", "Reading...\n", "'http://h/a.deb' a_1_amd64.deb 5 MD5Sum:00\n", "'http://h/a.deb' a_1%zz_amd64.deb 5 SHA256:" + hash + "\n"} {
		if got, err := parseURIs([]byte(bad)); err == nil {
			t.Errorf("%q was read as %v", bad, got)
		}
	}
}
