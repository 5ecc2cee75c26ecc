package store_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/store"
	"powercloud.unidatum.com/go/store/storetest"
)

// TestDefectsOfWhatIsReadAreNoted spoils what one location has and looks which
// defects a way of reading notes.
func TestDefectsOfWhatIsReadAreNoted(t *testing.T) {
	rollBack := func(b *storetest.Testbed) {
		back := b.Snapshot(0)
		b.Now = b.Now.Add(time.Hour)
		storetest.Put(t, b.Open(), "x", []byte("newer"))
		back()
	}
	for title, c := range map[string]struct {
		spoil     func(*storetest.Testbed)
		get, list string
	}{
		"nothing":            {func(*storetest.Testbed) {}, "[]", "[]"},
		"gone":               {func(b *storetest.Testbed) { os.RemoveAll(b.Paths[0]) }, "[false]", "[false]"},
		"down":               {func(b *storetest.Testbed) { b.Spoil(0) }, "[]", "[]"},
		"an older version":   {rollBack, "[false]", "[false]"},
		"a corrupt manifest": {func(b *storetest.Testbed) { b.Alter(b.Blobs(0, blob.KindManifest)...) }, "[true]", "[true]"},
		"corrupt chunks":     {func(b *storetest.Testbed) { b.Alter(b.Blobs(0, blob.KindChunk)...) }, "[true]", "[]"},
	} {
		t.Run(title, func(t *testing.T) {
			b := storetest.New(t, 3)
			storetest.Put(t, b.Open(), "x", []byte("content"))
			c.spoil(b)
			defects := func(read func(*store.Store)) string {
				set := b.Set()
				s, err := store.New(set, b.Cluster.Root(t), store.Options{})
				if err != nil {
					t.Fatal(err)
				}
				read(s)
				corrupt := []bool{}
				for _, d := range set.Defects() {
					if d.Location.String() != b.Paths[0] {
						t.Errorf("a defect is noted of %s", d.Location)
					}
					corrupt = append(corrupt, d.Corrupt)
				}
				return fmt.Sprint(corrupt)
			}
			get := func(s *store.Store) {
				if _, err := s.Get(context.Background(), "x", io.Discard, nil); err != nil {
					t.Error(err)
				}
			}
			list := func(s *store.Store) {
				if _, err := s.List(context.Background(), ""); err != nil {
					t.Error(err)
				}
			}
			if got := defects(get); got != c.get {
				t.Errorf("get notes defects %s, want %s", got, c.get)
			}
			if got := defects(list); got != c.list {
				t.Errorf("list notes defects %s, want %s", got, c.list)
			}
		})
	}
}
