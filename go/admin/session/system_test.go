package session_test

import (
	"errors"
	"io/fs"
	"slices"
	"testing"

	"powercloud.unidatum.com/go/admin/session"
	"powercloud.unidatum.com/go/cluster/registry"
	"powercloud.unidatum.com/go/store"
	"powercloud.unidatum.com/go/store/storetest"
)

func TestSystemObjects(t *testing.T) {
	bed := storetest.New(t, 3)
	bed.Init()
	objects := session.SystemObjects{Store: bed.Open()}
	if _, err := objects.Read(t.Context(), "x", 9); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no object: %v", err)
	}
	for _, content := range []string{"hello", "hi", ""} {
		if err := objects.Write(t.Context(), "x", []byte(content)); err != nil {
			t.Fatal(err)
		}
		got, err := objects.Read(t.Context(), "x", int64(len(content)))
		if err != nil || string(got) != content {
			t.Errorf("%q is read as %q, %v", content, got, err)
		}
	}
	if err := objects.Write(t.Context(), "x", []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, err := objects.Read(t.Context(), "x", 4); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("one that is too large: %v", err)
	}
	// Which was there, as far as anybody knows.
	bed.Spoil(0)
	bed.Spoil(1)
	bed.Spoil(2)
	objects = session.SystemObjects{Store: bed.Open()}
	if _, err := objects.Read(t.Context(), "x", 9); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("one that can't be read: %v", err)
	}
}

// TestFolder: what is written is listed, until it is removed.
func TestFolder(t *testing.T) {
	const folder = ".powercloud/things/"
	bed := storetest.New(t, 3)
	bed.Init()
	objects := session.SystemObjects{Store: bed.Open()}
	for _, name := range []string{folder + "a", folder + "b", "a"} {
		if err := objects.Write(t.Context(), name, nil); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := objects.Remove(t.Context(), folder+"a"); err != nil {
			t.Fatal(err)
		}
	}
	if names, err := objects.List(t.Context(), folder); err != nil || !slices.Equal(names, []string{folder + "b"}) {
		t.Errorf("listed are %q, %v", names, err)
	}
	if _, err := objects.Read(t.Context(), folder+"a", 9); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("one that was removed: %v", err)
	}
}

// TestRegistryOfTwoAdmins: each has a store of its own at the same locations.
func TestRegistryOfTwoAdmins(t *testing.T) {
	for _, name := range []string{registry.Folder, registry.OldName} {
		if !store.IsSystem(name) {
			t.Errorf("%s isn't the system's own", name)
		}
	}
	bed := storetest.New(t, 3)
	bed.Init()
	one, other := session.SystemObjects{Store: bed.Open()}, session.SystemObjects{Store: bed.Open()}
	cluster := bed.Cluster.ID
	stale, err := registry.Load(t.Context(), other, cluster)
	if err != nil {
		t.Fatal(err)
	}
	mine, err := registry.Update(t.Context(), one, cluster, func(r *registry.Registry) error { r.Membership = 1; return nil })
	if err != nil {
		t.Fatal(err)
	}
	stale.Revocations = 1
	if _, err := registry.Keep(t.Context(), other, stale); err != nil {
		t.Fatal(err)
	}
	both, err := registry.Load(t.Context(), one, cluster)
	if err != nil || both.Membership != 1 || both.Revocations != 1 || mine.Membership != 1 {
		t.Errorf("%+v, %v", both, err)
	}
}
