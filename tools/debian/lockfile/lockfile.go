// Package lockfile reads and writes the lock file of Debian packages, which
// pins every package by its version and SHA-256. The repository rule in
// debian.bzl reads it too.
package lockfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A Lock is the content of the lock file.
type Lock struct {
	// Suite is the code name of the only suite that packages come from, such
	// as "bookworm". Versions in the main suite keep being served; those of
	// its security and update suites come and go.
	Suite string `json:"suite"`
	// Sets are sorted by name.
	Sets []Set `json:"sets"`
}

// A Set is a group of packages that are fetched together.
type Set struct {
	Name string `json:"name"`
	// Architecture is Debian's name for it: "amd64" or "arm64".
	Architecture string `json:"architecture"`
	// Closure is whether the set also has everything that the requested
	// packages need.
	Closure bool `json:"closure"`
	// Requested are the names that the set was made from, sorted.
	Requested []string `json:"requested"`
	// Packages are sorted by name.
	Packages []Package `json:"packages"`
}

// A Package is one pinned package.
type Package struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Architecture is that of the set, or "all".
	Architecture string `json:"architecture"`
	// SHA256 is the hash of the .deb file in 64 lower-case hex digits.
	SHA256 string `json:"sha256"`
	// File is the name that APT gives the file: FileName.
	File string `json:"file"`
}

// FileName is the name that `apt-get download` gives a package's file.
func FileName(name, version, architecture string) string {
	return fmt.Sprintf("%s_%s_%s.deb", name, strings.ReplaceAll(version, ":", "%3a"), architecture)
}

// Parse reads a lock file. It refuses whatever [Lock.Marshal] would not have
// written: unknown, missing and repeated fields, another order, other spaces.
func Parse(content []byte) (*Lock, error) {
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	var lock Lock
	if err := decoder.Decode(&lock); err != nil {
		return nil, fmt.Errorf("read the lock file of Debian packages: %w", err)
	}
	canonical, err := lock.Marshal()
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(canonical, content) {
		return nil, errors.New("read the lock file of Debian packages: it was edited by hand; write it with `bazel run //tools/debian/lock`")
	}
	return &lock, nil
}

// Marshal writes the lock file, sorted. It refuses a lock that breaks a rule
// stated at the fields.
func (l *Lock) Marshal() ([]byte, error) {
	sorted := Lock{Suite: l.Suite, Sets: slices.Clone(l.Sets)}
	slices.SortFunc(sorted.Sets, func(a, b Set) int { return strings.Compare(a.Name, b.Name) })
	for i := range sorted.Sets {
		set := &sorted.Sets[i]
		set.Requested = slices.Sorted(slices.Values(set.Requested))
		set.Packages = slices.SortedFunc(slices.Values(set.Packages), func(a, b Package) int {
			return strings.Compare(a.Name, b.Name)
		})
	}
	if err := sorted.validate(); err != nil {
		return nil, fmt.Errorf("the lock file of Debian packages: %w", err)
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(&sorted); err != nil {
		return nil, fmt.Errorf("write the lock file of Debian packages: %w", err)
	}
	return b.Bytes(), nil
}

// Put adds a set, or replaces the one of the same name.
func (l *Lock) Put(set Set) {
	l.Sets = slices.DeleteFunc(l.Sets, func(s Set) bool { return s.Name == set.Name })
	l.Sets = append(l.Sets, set)
}

// IsPackageName tells whether the text can be the name of a Debian package.
func IsPackageName(text string) bool {
	return regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]*$`).MatchString(text)
}

// validate checks a sorted lock.
func (l *Lock) validate() error {
	word := regexp.MustCompile(`^[a-z][a-z0-9_-]*$`)
	if !word.MatchString(l.Suite) {
		return fmt.Errorf("%q is no code name of a suite", l.Suite)
	}
	for i, set := range l.Sets {
		switch {
		case !word.MatchString(set.Name):
			return fmt.Errorf("%q is no name of a set: it must begin with a letter and hold only a-z, 0-9, _ and -", set.Name)
		case i > 0 && l.Sets[i-1].Name == set.Name:
			return fmt.Errorf("the set %s is there twice", set.Name)
		}
		if err := set.validate(); err != nil {
			return fmt.Errorf("the set %s: %w", set.Name, err)
		}
	}
	return nil
}

// validate checks a sorted set.
func (s *Set) validate() error {
	if s.Architecture != "amd64" && s.Architecture != "arm64" {
		return fmt.Errorf("%q is not one of the architectures amd64 and arm64", s.Architecture)
	}
	if len(s.Requested) == 0 {
		return errors.New("no package was requested")
	}
	for i, p := range s.Packages {
		if err := p.validate(s.Architecture); err != nil {
			return fmt.Errorf("the package %q: %w", p.Name, err)
		}
		if i > 0 && s.Packages[i-1].Name == p.Name {
			return fmt.Errorf("the package %s is there twice", p.Name)
		}
	}
	for i, name := range s.Requested {
		switch {
		case !slices.ContainsFunc(s.Packages, func(p Package) bool { return p.Name == name }):
			return fmt.Errorf("%q was requested and is not among the packages", name)
		case i > 0 && s.Requested[i-1] == name:
			return fmt.Errorf("%s was requested twice", name)
		}
	}
	if !s.Closure && len(s.Packages) != len(s.Requested) {
		return errors.New("it has packages that were not requested, and is not a closure")
	}
	return nil
}

func (p *Package) validate(architecture string) error {
	switch {
	case !IsPackageName(p.Name):
		return errors.New("that is no name of a package")
	case !regexp.MustCompile(`^[0-9][A-Za-z0-9.+:~-]*$`).MatchString(p.Version):
		return fmt.Errorf("%q is no version", p.Version)
	case p.Architecture != architecture && p.Architecture != "all":
		return fmt.Errorf("it is for %q instead of %s or all", p.Architecture, architecture)
	case !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(p.SHA256):
		return fmt.Errorf("%q is no SHA-256", p.SHA256)
	case p.File != FileName(p.Name, p.Version, p.Architecture):
		return fmt.Errorf("its file is named %q", p.File)
	}
	return nil
}
