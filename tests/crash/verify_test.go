//go:build linux && (amd64 || arm64)

package crash_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// verify looks whether a cluster in which a scenario was interrupted is whole.
// The untouched objects and its own must read as one of their versions, and
// from then on always as the same; check, repair and gc must succeed; and nothing
// may be left over. It returns the first fault.
func (c cluster) verify(t *testing.T, s scenario, own map[string]versions) error {
	t.Helper()
	found, err := c.read(t, s.objects(own))
	if err != nil {
		return fmt.Errorf("before repair: %w", err)
	}
	if r := c.pcctl(t, "check"); r.status > 1 || strings.Contains(r.stdout, "DAMAGED") {
		return fmt.Errorf("before repair: %v", r)
	}
	for _, args := range [][]string{
		s.repair(), {"check"}, {"gc", "--grace", "0s"}, {"gc", "--grace", "0s"}, {"check", "--verify"},
	} {
		if r := c.pcctl(t, args...); r.status != 0 {
			return fmt.Errorf("%v", r)
		}
	}
	if list := c.leftovers(); len(list) > 0 {
		return fmt.Errorf("after two runs of gc these are left over: %s", strings.Join(list, ", "))
	}
	if _, err := c.read(t, found); err != nil {
		return fmt.Errorf("after repair and gc: %w", err)
	}
	return nil
}

// read reads all objects and returns the version that each has. There must be
// no others.
func (c cluster) read(t *testing.T, objects map[string]versions) (map[string]versions, error) {
	t.Helper()
	out := filepath.Join(c.dir, "read")
	defer os.RemoveAll(out)
	if r := c.pcctl(t, "get", "/", out); r.status != 0 {
		return nil, fmt.Errorf("reading all objects: %v", r)
	}
	found := map[string]versions{}
	for name, allowed := range objects {
		version, err := identify(filepath.Join(out, name), allowed)
		if err != nil {
			return nil, fmt.Errorf("%s %w", name, err)
		}
		found[name] = versions{version}
	}
	return found, filepath.WalkDir(out, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if name, _ := filepath.Rel(out, path); objects[name] == nil {
			return fmt.Errorf("there is an object %s that nobody stored", name)
		}
		return nil
	})
}

// identify returns which of the allowed versions a file holds.
func identify(path string, allowed versions) (string, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if slices.Contains(allowed, absent) {
			return absent, nil
		}
		return "", fmt.Errorf("is not there, want one of %q", allowed)
	}
	if err != nil {
		return "", err
	}
	for version, content := range contents() {
		if !bytes.Equal(content, data) {
			continue
		}
		if slices.Contains(allowed, version) {
			return version, nil
		}
		return "", fmt.Errorf("reads as %s, want one of %q", version, allowed)
	}
	return "", fmt.Errorf("reads as %d unknown bytes, want one of %q", len(data), allowed)
}

// leftovers lists the files of locations and configuration that are not where
// something that is in use can be.
func (c cluster) leftovers() []string {
	blob := regexp.MustCompile(`^[a-d]/(header|(manifest|chunk|record)/[0-9a-f]{2}/[0-9a-f]{64})$`)
	var list []string
	err := filepath.WalkDir(c.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		path = strings.TrimPrefix(path, c.dir+"/")
		top, _, _ := strings.Cut(path, "/")
		if slices.Contains(c.directories, top) && !blob.MatchString(path) {
			list = append(list, path)
		}
		return nil
	})
	if err != nil {
		list = append(list, err.Error())
	}
	return list
}

// repeat runs an interrupted command again and verifies that it has done all
// that it should.
func (c cluster) repeat(t *testing.T, s scenario) error {
	t.Helper()
	r := c.pcctl(t, s.args...)
	if r.status != 0 && !(s.args[0] == "rm" && strings.Contains(r.stderr, "no such object")) {
		return fmt.Errorf("running it again: %v", r)
	}
	if _, err := c.read(t, s.objects(s.after)); err != nil {
		return fmt.Errorf("after running it again: %w", err)
	}
	return nil
}

// repair is the command that mends what the scenario leaves: what it has itself,
// or a plain repair.
func (s scenario) repair() []string {
	if s.args[0] == "repair" {
		return s.args
	}
	return []string{"repair"}
}

// objects adds the untouched ones.
func (s scenario) objects(own map[string]versions) map[string]versions {
	all := untouched()
	maps.Copy(all, own)
	return all
}
