package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
	"powercloud.unidatum.com/go/store"
	"powercloud.unidatum.com/go/store/manifest"
	"powercloud.unidatum.com/go/store/storetest"
)

// folder is the folder of these tests.
const folder = ".powercloud/things/"

func remove(t *testing.T, s *store.Store, name string) {
	t.Helper()
	if err := s.Remove(context.Background(), name); err != nil {
		t.Fatal(err)
	}
}

// wantFolder checks what is in the folder, by the names below it.
func wantFolder(t *testing.T, s *store.Store, want ...string) {
	t.Helper()
	names, err := s.ListFolder(context.Background(), folder)
	if err != nil {
		t.Error(err)
	}
	slices.Sort(names)
	for i := range want {
		want[i] = folder + want[i]
	}
	if !slices.Equal(names, want) {
		t.Errorf("the folder has %q, want %q", names, want)
	}
}

func TestListFolder(t *testing.T) {
	b := storetest.New(t, 3)
	s := b.Open()
	wantFolder(t, s)
	for _, name := range []string{"a", folder + "a", folder + "b", folder + "c/d", strings.TrimSuffix(folder, "/"), ".powercloud/other/a"} {
		storetest.Put(t, s, name, []byte("content"))
	}
	wantFolder(t, s, "a", "b", "c/d")
	wantFolder(t, b.Open(1, 2), "a", "b", "c/d")
	remove(t, b.Open(0, 1), folder+"a")
	wantFolder(t, s, "b", "c/d")
	remove(t, s, folder+"b")
	wantFolder(t, s, "c/d")
	wantFolder(t, b.Open(), "c/d")
	if list, err := s.List(context.Background(), ".powercloud/"); err != nil || list.Len() != 3 {
		t.Errorf("of all objects the list has %d, %v", list.Len(), err)
	}
}

// TestListFolderReadsRemovedObjectsOnce: what is removed stays so.
func TestListFolderReadsRemovedObjectsOnce(t *testing.T) {
	b := storetest.New(t, 1)
	for i := range 5 {
		storetest.Put(t, b.Open(), fmt.Sprintf("%s%d", folder, i), nil)
	}
	for i := range 4 {
		remove(t, b.Open(), fmt.Sprintf("%s%d", folder, i))
	}
	s, faulty := openHooked(b, nil)
	wantFolder(t, s, "4")
	before := faulty[0].Calls(blobtest.Get)
	wantFolder(t, s, "4")
	if n := faulty[0].Calls(blobtest.Get) - before; n != 1 {
		t.Errorf("%d manifests were read", n)
	}
}

// TestListFolderWhileObjectsAreReplaced: whenever one is removed that another has taken the
// place of, that one is listed.
func TestListFolderWhileObjectsAreReplaced(t *testing.T) {
	for replaced := range 4 {
		b := storetest.New(t, 3)
		storetest.Put(t, b.Open(), folder+"0", nil)
		sealer, err := manifest.NewSealer(b.Cluster.Root(t))
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		newest := 0
		other := b.Open()
		// Right before the newest is read, and after the listing.
		s, _ := openHooked(b, func(_ int, op blobtest.Op, name blob.Name) {
			mu.Lock()
			defer mu.Unlock()
			at := fmt.Sprintf("%s%d", folder, newest)
			if op == blobtest.Get && name == sealer.BlobName(at) && newest < replaced {
				newest++
				storetest.Put(t, other, fmt.Sprintf("%s%d", folder, newest), nil)
				remove(t, other, at)
			}
		})
		wantFolder(t, s, fmt.Sprint(replaced))
	}
}

// TestListFolderIsContended: it is replaced at every look.
func TestListFolderIsContended(t *testing.T) {
	b := storetest.New(t, 1)
	storetest.Put(t, b.Open(), folder+"0", nil)
	newest := 0
	other := b.Open()
	s, _ := openHooked(b, func(_ int, op blobtest.Op, _ blob.Name) {
		if op == blobtest.List {
			newest++
			storetest.Put(t, other, fmt.Sprintf("%s%d", folder, newest), nil)
			remove(t, other, fmt.Sprintf("%s%d", folder, newest-1))
		}
	})
	_, err := s.ListFolder(context.Background(), folder)
	storetest.WantError(t, err, store.ErrContended, folder)
}

// TestFolderWithManifestsThatCanNotBeRead: a single location can't make them up.
func TestFolderWithManifestsThatCanNotBeRead(t *testing.T) {
	b := storetest.New(t, 3)
	var warnings []string
	b.Warn = func(line string) { warnings = append(warnings, line) }
	storetest.Put(t, b.Open(), folder+"a", nil)
	b.Invent(0, folder+"made up")
	s := b.Open()
	wantFolder(t, s, "a")
	wantFolder(t, s, "a")
	if len(warnings) != 1 || !strings.Contains(warnings[0], "of "+folder+" can't be read and is passed over") {
		t.Errorf("warned of %q", warnings)
	}
	// Where others may have it too, it counts.
	s, faulty := openHooked(b, nil)
	faulty[1].Fail(blobtest.Reads, nil)
	_, err := s.ListFolder(context.Background(), folder)
	storetest.WantError(t, err, nil, "manifest/00", "of "+folder+" can't be read", "run 'pcctl check'")
	b.Invent(1, folder+"made up")
	_, err = b.Open().ListFolder(context.Background(), folder)
	storetest.WantError(t, err, nil, "manifest/00", "can't be read", "run 'pcctl check'")
}

// TestFolderOfLocationsThatFail: as long as the others have what was acknowledged, they
// suffice.
func TestFolderOfLocationsThatFail(t *testing.T) {
	b := storetest.New(t, 3)
	s, faulty := openHooked(b, nil)
	faulty[2].Fail(blobtest.Put, nil)
	storetest.Put(t, s, folder+"a", nil)
	faulty[2].Heal()
	faulty[0].Fail(blobtest.List, nil)
	wantFolder(t, s, "a")
	faulty[1].Fail(blobtest.List, nil)
	_, err := s.ListFolder(context.Background(), folder)
	storetest.WantError(t, err, blobtest.ErrFault, "objects may be missing from the list, as "+b.Paths[1])
}

// crowded is a location that lists any number of manifests.
type crowded struct {
	blob.Location
	start [8]byte
}

func (c *crowded) List(_ context.Context, kind blob.Kind, fn func(blob.Info) error) error {
	for i := range 1<<16 + 1 {
		name := blob.Name{Kind: kind}
		copy(name.ID[:], c.start[:])
		name.ID[8], name.ID[9], name.ID[10] = byte(i>>16), byte(i>>8), byte(i)
		if err := fn(blob.Info{Name: name}); err != nil {
			return err
		}
	}
	return nil
}

// TestFolderWithTooManyManifests: a location with so many is done without.
func TestFolderWithTooManyManifests(t *testing.T) {
	b := storetest.New(t, 3)
	storetest.Put(t, b.Open(), folder+"a", nil)
	sealer, err := manifest.NewSealer(b.Cluster.Root(t))
	if err != nil {
		t.Fatal(err)
	}
	var warnings []string
	b.Warn = func(line string) { warnings = append(warnings, line) }
	full := 1
	b.Wrap = func(i int, location blob.Location) blob.Location {
		if i < full {
			return &crowded{location, sealer.FolderStart(folder)}
		}
		return location
	}
	wantFolder(t, b.Open(), "a")
	want := b.Paths[0] + " can't be listed: it has more than 65536 manifests in that folder; 'pcctl gc --tombstones' deletes those of removed objects"
	if !slices.Equal(warnings, []string{want}) {
		t.Errorf("warned of %q", warnings)
	}
	full = 2
	_, err = b.Open().ListFolder(context.Background(), folder)
	storetest.WantError(t, err, nil, "objects may be missing from the list", "more than 65536 manifests")
}
