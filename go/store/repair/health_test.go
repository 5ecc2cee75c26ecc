package repair_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/dir"
	"powercloud.unidatum.com/go/blob/ec"
	"powercloud.unidatum.com/go/blob/quorum"
	"powercloud.unidatum.com/go/store"
	"powercloud.unidatum.com/go/store/chunk"
	"powercloud.unidatum.com/go/store/repair"
	"powercloud.unidatum.com/go/store/repository"
	"powercloud.unidatum.com/go/store/storetest"
)

// coded is a cluster over an erasure-coded set of three directories, of which two
// rebuild a blob, and a fourth directory beside it. It has a header, two manifests
// and three chunks.
type coded struct {
	*storetest.Testbed
	t *testing.T
}

func newCoded(t *testing.T) *coded {
	t.Helper()
	c := &coded{storetest.New(t, 4), t}
	set := c.set()
	if err := set.NewWriter().Put(t.Context(), blob.Header(), c.Cluster.Header); err != nil {
		t.Fatal(err)
	}
	s, err := store.New(set, c.Cluster.Root(t), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	storetest.Put(t, s, "large", storetest.Content(1, chunk.Size+1))
	storetest.Put(t, s, "small", storetest.Content(2, 1))
	return c
}

// set returns the locations as another program would open them.
func (c *coded) set() *quorum.Set {
	c.t.Helper()
	locations := make([]blob.Location, len(c.Paths))
	for i, path := range c.Paths {
		var err error
		if locations[i], err = dir.New(path); err != nil {
			c.t.Fatal(err)
		}
	}
	const parts, data = 3, 2
	coded, err := ec.New("ec", data, locations[:parts])
	if err != nil {
		c.t.Fatal(err)
	}
	set, err := quorum.New([]blob.Location{coded, locations[parts]}, 0)
	if err != nil {
		c.t.Fatal(err)
	}
	return set
}

// run checks or repairs, and compares the report's rows.
func (c *coded) run(run func(context.Context, *repository.Repository, repair.Options) (*repair.Report, error), want ...string) *repair.Report {
	c.t.Helper()
	headers, err := repository.Read(blob.ReadOnly(c.t.Context()), c.set())
	if err != nil {
		c.t.Fatal(err)
	}
	repo, err := headers.Unlock(repository.Secret{Recovery: &c.Cluster.Recovery})
	if err != nil {
		c.t.Fatal(err)
	}
	report, err := run(c.t.Context(), repo, repair.Options{Verify: true})
	if err != nil {
		c.t.Fatal(err)
	}
	if failures := repo.Set.Close(c.t.Context()); len(failures) > 0 {
		c.t.Fatal(failures)
	}
	wantRows(c.t, report, want...)
	return report
}

// TestCodedSet: what an erasure-coded set can put together by itself is made whole
// from its parts, the rest from other locations.
func TestCodedSet(t *testing.T) {
	const whole = "6 0 0 0 0 ok"
	for title, c := range map[string]struct {
		spoil           func(c *coded)
		check, repaired [2]string
	}{
		"nothing is wrong": {func(*coded) {}, [2]string{whole, whole}, [2]string{whole, whole}},
		"a part is lost": {func(c *coded) {
			c.remove(1)
		}, [2]string{"6 6 0 0 0 needs repair", whole}, [2]string{"6 6 0 0 6 repaired", whole}},
		"shards are altered": {func(c *coded) {
			c.Alter(c.Blobs(0, blob.KindChunk)...)
			c.Alter(c.Blobs(2, blob.KindManifest)...)
		}, [2]string{"6 0 0 5 0 needs repair", whole}, [2]string{"6 0 0 5 5 repaired", whole}},
		"more parts are lost than it survives": {func(c *coded) {
			c.remove(0)
			c.remove(1)
		},
			// Of manifests, too few shards count as left by a write that failed.
			[2]string{"4 2 0 4 0 needs repair", whole}, [2]string{"4 2 0 4 6 repaired", whole}},
		"the other location is lost": {func(c *coded) {
			c.remove(3)
		}, [2]string{whole, "0 6 0 0 0 needs repair"}, [2]string{whole, "0 6 0 0 6 repaired"}},
		"the other location and a part are lost": {func(c *coded) {
			c.remove(3)
			c.remove(0)
		}, [2]string{"6 6 0 0 0 needs repair", "0 6 0 0 0 needs repair"}, [2]string{"6 6 0 0 6 repaired", "0 6 0 0 6 repaired"}},
	} {
		t.Run(title, func(t *testing.T) {
			b := newCoded(t)
			c.spoil(b)
			// Twice: a check changes nothing.
			for range 2 {
				if report := b.run(repair.Check, c.check[:]...); (report.Err() == nil) != (title == "nothing is wrong") {
					t.Errorf("the check ends with: %v", report.Err())
				}
			}
			if report := b.run(repair.Repair, c.repaired[:]...); report.Err() != nil {
				t.Errorf("the repair ends with: %v", report.Err())
			}
			b.run(repair.Check, whole, whole)
			s, err := store.New(b.set(), b.Cluster.Root(t), store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			storetest.WantContent(t, s, "large", storetest.Content(1, chunk.Size+1))
			storetest.WantContent(t, s, "small", storetest.Content(2, 1))
		})
	}
}

func (c *coded) remove(part int) {
	c.t.Helper()
	if err := os.RemoveAll(c.Paths[part]); err != nil {
		c.t.Fatal(err)
	}
}

// TestCodedSetWithoutAPart: everything can be read, and still it is said.
func TestCodedSetWithoutAPart(t *testing.T) {
	b := newCoded(t)
	b.Spoil(1)
	b.Alter(b.Blobs(3, blob.KindChunk)...)
	why := "part unreachable: " + b.Paths[1] + ": it is a file, not a directory"
	report := b.run(repair.Check, "6 0 0 0 0 "+why, "6 0 0 3 0 needs repair")
	// The locations that a repair can mend come first.
	storetest.WantError(t, report.Err(), repair.ErrDiffer)
	report = b.run(repair.Repair, "6 0 0 0 0 "+why, "6 0 0 3 3 repaired")
	if err := report.Err(); err == nil || !strings.Contains(err.Error(), "ec: "+why) {
		t.Errorf("the repair ends with: %v", err)
	}
}
