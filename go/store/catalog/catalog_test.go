package catalog

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"reflect"
	"slices"
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

// listings says that these locations were listed, and have no marks for it.
func listings(locations ...LocationKey) []Listing {
	var listed []Listing
	for _, location := range locations {
		listed = append(listed, Listing{Location: location})
	}
	return listed
}

// save fills a catalog with one manifest at two locations.
func save(t *testing.T, c *Catalog) {
	t.Helper()
	s := c.Load(7)
	s.Set(some, []byte("manifest"), []Copy{{Location: home, Mark: "mark-1", Version: version(10)}, {Location: colo, Mark: "mark-2", Version: version(20)}}, []LocationKey{home, colo})
	if err := c.Save(s, listings(home, colo)); err != nil {
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
	s.Set(some, []byte("newer"), []Copy{{Location: home, Mark: "mark-3", Version: version(30)}}, []LocationKey{home})
	if err := c.Save(s, listings(home)); err != nil {
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
	if err := c.Save(c.Load(7), listings(home)); err != nil {
		t.Fatal(err)
	}
	wantVersion(t, c.Load(7), colo, "mark-2", 20)
	if err := c.Save(c.Load(7), listings(home, colo)); err != nil {
		t.Fatal(err)
	}
	wantVersion(t, c.Load(7), colo, "mark-2", 0)
}

// TestCopyThatIsGoneIsForgotten has a copy go at one of two locations.
func TestCopyThatIsGoneIsForgotten(t *testing.T) {
	c := newCatalog(t, t.TempDir(), keystest.First(t))
	save(t, c)
	s := c.Load(7)
	wantVersion(t, s, colo, "mark-2", 20)
	s.Gone(some, home)
	s.Gone(Key{7, 9}, home)
	if err := c.Save(s, listings(home, colo)); err != nil {
		t.Fatal(err)
	}
	s = c.Load(7)
	wantVersion(t, s, home, "mark-1", 0)
	wantVersion(t, s, colo, "mark-2", 20)
}

func TestSections(t *testing.T) {
	c := newCatalog(t, t.TempDir(), keystest.First(t))
	save(t, c)
	s := c.Load(7)
	wantUnchanged := func(location LocationKey, mark string, want bool) {
		t.Helper()
		if s.Unchanged(location, mark) != want {
			t.Errorf("with the mark %q the section counts as unchanged: %v", mark, !want)
		}
	}
	wantUnchanged(home, "", false)
	wantVersion(t, s, home, "mark-1", 10)
	if err := c.Save(s, []Listing{{home, "section-1"}, {colo, ""}}); err != nil {
		t.Fatal(err)
	}
	s = c.Load(7)
	wantUnchanged(home, "section-1", true)
	wantUnchanged(home, "section-2", false)
	wantUnchanged(colo, "section-1", false)
	wantUnchanged(colo, "", false)
	if got := s.At(home); !slices.Equal(got, []Key{some}) {
		t.Errorf("at home there are %x", got)
	}
	if got, ok := s.UnchangedVersion(some, home); !ok || got != version(10) {
		t.Errorf("the unchanged copy is version %v, %v", got, ok)
	}
	if _, ok := s.UnchangedVersion(some, Location("another")); ok {
		t.Error("a copy is known where there is none")
	}

	// A copy that was read again as it was known keeps its mark, another doesn't.
	unchanged := func(time int64) bool {
		return s.Set(some, []byte("manifest"), []Copy{{Location: home, Unchanged: true, Version: version(time)}}, []LocationKey{home})
	}
	if !unchanged(10) {
		t.Error("an unchanged copy isn't known")
	}
	wantVersion(t, s, home, "mark-1", 10)
	if unchanged(11) {
		t.Error("a copy that has changed counts as unchanged")
	}
	wantVersion(t, s, home, "mark-1", 0)
	if err := c.Save(s, []Listing{{Location: home}}); err != nil {
		t.Fatal(err)
	}
	s = c.Load(7)
	wantUnchanged(home, "section-1", false)
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
	if err := c.Save(s, listings(home, colo)); err != nil {
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
		s.Set(some, []byte("manifest"), []Copy{{Location: home, Mark: "mark-1", Version: version(10)}}, []LocationKey{home})
		return c.Save(s, listings(home))
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
				s.Set(some, []byte("manifest"), []Copy{{Location: home, Mark: "mark-1", Version: version(int64(i))}}, []LocationKey{home})
				if err := c.Save(s, listings(home)); err != nil {
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
	s.Set(some, make([]byte, MaxManifest+1), []Copy{{Location: home, Mark: "mark-1", Version: version(10)}}, []LocationKey{home})
	wantVersion(t, s, home, "mark-1", 0)
}

// golden is the catalog of TestSaveAndLoad, and the mark "section-1" of home, as
// the second version of this package wrote it.
func golden(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/shard-07-v2.hex")
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
	if !s.Unchanged(home, "section-1") || s.Unchanged(colo, "section-1") {
		t.Error("the mark of the section at home isn't as it was")
	}
}

func FuzzParse(f *testing.F) {
	content, err := newCatalog(f, f.TempDir(), keystest.First(f)).open(7, golden(f))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(content)
	f.Fuzz(func(t *testing.T, content []byte) {
		entries, sections, err := parse(content)
		if err != nil {
			return
		}
		written := appendShard(nil, entries, sections)
		if !bytes.Equal(written, content) {
			t.Errorf("%x was read and written as %x", content, written)
		}
		again, marks, err := parse(written)
		if err != nil || !reflect.DeepEqual(again, entries) || !reflect.DeepEqual(marks, sections) {
			t.Errorf("what was written doesn't read the same: %v", err)
		}
	})
}
