package catalog

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"powercloud.unidatum.com/go/keys/keystest"
	"powercloud.unidatum.com/go/store/manifest"
)

func newCatalog(t testing.TB, dir string, cluster keystest.Cluster) *Catalog {
	t.Helper()
	c, err := New(dir, cluster.Root(t))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func version(time int64) manifest.Version {
	return manifest.Version{Time: time, Tie: [16]byte{1, 2, 3}}
}

var (
	home, colo = Location("./home"), Location("s3://bucket/colo")
	some       = Key{7, 1}
)

// save fills a catalog with one manifest at two locations.
func save(t *testing.T, c *Catalog) {
	t.Helper()
	s := c.Load(7)
	s.Set(some, []byte("manifest"), []Copy{{home, "mark-1", version(10)}, {colo, "mark-2", version(20)}}, []LocationKey{home, colo})
	if err := c.Save(s, []LocationKey{home, colo}); err != nil {
		t.Fatal(err)
	}
}

// wantVersion looks up a copy; 0 means that it must not be known.
func wantVersion(t *testing.T, s *Shard, location LocationKey, mark string, time int64) {
	t.Helper()
	got, ok := s.Version(some, location, mark)
	if ok != (time != 0) || ok && got != version(time) {
		t.Errorf("a copy with mark %q is version %v, %v; want time %d", mark, got, ok, time)
	}
}

func TestSaveAndLoad(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "yet")
	c := newCatalog(t, dir, keystest.First(t))
	if s := c.Load(7); len(s.entries) != 0 {
		t.Errorf("a new catalog knows %d manifests", len(s.entries))
	}
	save(t, c)
	s := c.Load(7)
	wantVersion(t, s, home, "mark-1", 10)
	wantVersion(t, s, colo, "mark-2", 20)
	wantVersion(t, s, home, "mark-2", 0)
	wantVersion(t, s, Location("another"), "mark-1", 0)
	if got := s.Blob(some); string(got) != "manifest" {
		t.Errorf("the manifest is %q", got)
	}
	if s.Blob(Key{7, 2}) != nil || len(c.Load(8).entries) != 0 {
		t.Error("a manifest is known that was never entered")
	}
	for path, mode := range map[string]os.FileMode{dir: 0o700, c.path(7): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s has mode %v, %v", path, info.Mode(), err)
		}
	}
}

func TestOtherLocationsStay(t *testing.T) {
	c := newCatalog(t, t.TempDir(), keystest.First(t))
	save(t, c)
	s := c.Load(7)
	s.Set(some, []byte("newer"), []Copy{{home, "mark-3", version(30)}}, []LocationKey{home})
	if err := c.Save(s, []LocationKey{home}); err != nil {
		t.Fatal(err)
	}
	s = c.Load(7)
	wantVersion(t, s, home, "mark-3", 30)
	wantVersion(t, s, home, "mark-1", 0)
	wantVersion(t, s, colo, "mark-2", 20)
	if got := s.Blob(some); string(got) != "newer" {
		t.Errorf("the manifest is %q", got)
	}
}

func TestWhatIsGoneIsForgotten(t *testing.T) {
	c := newCatalog(t, t.TempDir(), keystest.First(t))
	save(t, c)
	// Only one of its two locations was listed.
	if err := c.Save(c.Load(7), []LocationKey{home}); err != nil {
		t.Fatal(err)
	}
	wantVersion(t, c.Load(7), colo, "mark-2", 20)
	if err := c.Save(c.Load(7), []LocationKey{home, colo}); err != nil {
		t.Fatal(err)
	}
	wantVersion(t, c.Load(7), colo, "mark-2", 0)
}

func TestUnchangedShardIsNotWritten(t *testing.T) {
	c := newCatalog(t, t.TempDir(), keystest.First(t))
	save(t, c)
	before, err := os.ReadFile(c.path(7))
	if err != nil {
		t.Fatal(err)
	}
	s := c.Load(7)
	wantVersion(t, s, home, "mark-1", 10)
	if err := c.Save(s, []LocationKey{home, colo}); err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(c.path(7)); err != nil || !bytes.Equal(before, after) {
		t.Errorf("it was written again, %v", err)
	}
}

// TestNothingButItsOwnIsBelieved alters the file in every way: it counts as empty.
func TestNothingButItsOwnIsBelieved(t *testing.T) {
	dir := t.TempDir()
	c := newCatalog(t, dir, keystest.First(t))
	save(t, c)
	stored, err := os.ReadFile(c.path(7))
	if err != nil {
		t.Fatal(err)
	}
	alter := func(title string, c *Catalog, first byte, content []byte) {
		t.Helper()
		if err := os.WriteFile(c.path(first), content, 0o600); err != nil {
			t.Fatal(err)
		}
		if s := c.Load(first); len(s.entries) != 0 {
			t.Errorf("%s was believed", title)
		}
	}
	for i := range stored {
		altered := bytes.Clone(stored)
		altered[i] ^= 1
		alter("an altered byte", c, 7, altered)
		alter("a file cut short", c, 7, stored[:i])
	}
	alter("another shard's file", c, 8, stored)
	alter("another cluster's file", newCatalog(t, dir, keystest.Second(t)), 7, stored)
	if err := os.Remove(c.path(7)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(c.path(7), 0o700); err != nil {
		t.Fatal(err)
	}
	if s := c.Load(7); len(s.entries) != 0 {
		t.Error("a directory was believed")
	}
}

func TestCatalogThatCannotBeSaved(t *testing.T) {
	top := t.TempDir()
	if err := os.WriteFile(filepath.Join(top, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	try := func(dir string) error {
		c := newCatalog(t, dir, keystest.First(t))
		s := c.Load(7)
		s.Set(some, []byte("manifest"), []Copy{{home, "mark-1", version(10)}}, []LocationKey{home})
		return c.Save(s, []LocationKey{home})
	}
	// There can be no directory: nothing to complain about.
	if err := try(filepath.Join(top, "file", "catalog")); err != nil {
		t.Error(err)
	}
	// There is one, and something in it is wrong.
	dir := filepath.Join(top, "catalog")
	if err := os.MkdirAll(filepath.Join(dir, "07", "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := try(dir); err == nil || !strings.Contains(err.Error(), "catalog") {
		t.Errorf("error %v, want one that says what could not be saved", err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*.tmp")); err != nil || len(left) > 0 {
		t.Errorf("%q is left over, %v", left, err)
	}
}

// TestSeveralProcessesAtOnce: they may lose what another has found out, but have
// nothing to complain about.
func TestSeveralProcessesAtOnce(t *testing.T) {
	dir := t.TempDir()
	var group errgroup.Group
	for range 8 {
		c := newCatalog(t, dir, keystest.First(t))
		group.Go(func() error {
			for i := range 200 {
				s := c.Load(7)
				s.Set(some, []byte("manifest"), []Copy{{home, "mark-1", version(int64(i))}}, []LocationKey{home})
				if err := c.Save(s, []LocationKey{home}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	c := newCatalog(t, dir, keystest.First(t))
	save(t, c)
	wantVersion(t, c.Load(7), home, "mark-1", 10)
}

func TestTooLargeIsLeftOut(t *testing.T) {
	s := newCatalog(t, t.TempDir(), keystest.First(t)).Load(7)
	s.Set(some, make([]byte, MaxManifest+1), []Copy{{home, "mark-1", version(10)}}, []LocationKey{home})
	wantVersion(t, s, home, "mark-1", 0)
}

// golden is the catalog of TestSaveAndLoad as the first version of this package
// wrote it.
func golden(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/shard-07-v1.hex")
	if err != nil {
		t.Fatal(err)
	}
	stored, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

func TestVector(t *testing.T) {
	c := newCatalog(t, t.TempDir(), keystest.First(t))
	if err := os.WriteFile(c.path(7), golden(t), 0o600); err != nil {
		t.Fatal(err)
	}
	s := c.Load(7)
	wantVersion(t, s, home, "mark-1", 10)
	wantVersion(t, s, colo, "mark-2", 20)
	if got := s.Blob(some); string(got) != "manifest" {
		t.Errorf("the manifest is %q", got)
	}
}

func FuzzParse(f *testing.F) {
	content, err := newCatalog(f, f.TempDir(), keystest.First(f)).open(7, golden(f))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(content)
	f.Fuzz(func(t *testing.T, content []byte) {
		entries, err := parse(content)
		if err != nil {
			return
		}
		written := appendEntries(nil, entries)
		if !bytes.Equal(written, content) {
			t.Errorf("%x was read and written as %x", content, written)
		}
		again, err := parse(written)
		if err != nil || !reflect.DeepEqual(again, entries) {
			t.Errorf("what was written doesn't read the same: %v", err)
		}
	})
}
