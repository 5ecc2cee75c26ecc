package store_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/store"
	"powercloud.unidatum.com/go/store/storetest"
)

// TestCorruptCopiesAreNoted spoils what one location has and looks whether a way
// of reading notes that.
func TestCorruptCopiesAreNoted(t *testing.T) {
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
		"nothing":            {func(*storetest.Testbed) {}, "", ""},
		"gone":               {func(b *storetest.Testbed) { os.RemoveAll(b.Paths[0]) }, "", ""},
		"down":               {func(b *storetest.Testbed) { b.Spoil(0) }, "", ""},
		"an older version":   {rollBack, "", ""},
		"a corrupt manifest": {func(b *storetest.Testbed) { b.Alter(b.Blobs(0, blob.KindManifest)...) }, "location-0", "location-0"},
		"corrupt chunks":     {func(b *storetest.Testbed) { b.Alter(b.Blobs(0, blob.KindChunk)...) }, "location-0", ""},
	} {
		t.Run(title, func(t *testing.T) {
			b := storetest.New(t, 3)
			storetest.Put(t, b.Open(), "x", []byte("content"))
			c.spoil(b)
			corrupt := func(read func(*store.Store)) string {
				set := b.Set()
				s, err := store.New(set, b.Cluster.Root(t), store.Options{})
				if err != nil {
					t.Fatal(err)
				}
				read(s)
				var found []string
				for _, location := range set.Corrupt() {
					found = append(found, filepath.Base(location.String()))
				}
				return strings.Join(found, " ")
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
			if got := corrupt(get); got != c.get {
				t.Errorf("get notes corrupt copies at %q, want %q", got, c.get)
			}
			if got := corrupt(list); got != c.list {
				t.Errorf("list notes corrupt copies at %q, want %q", got, c.list)
			}
		})
	}
}
