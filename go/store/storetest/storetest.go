// Package storetest sets up clusters over directories for tests, and does to
// them what hostile or failing providers do.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/dir"
	"powercloud.unidatum.com/go/blob/quorum"
	"powercloud.unidatum.com/go/keys/keystest"
	"powercloud.unidatum.com/go/store"
	"powercloud.unidatum.com/go/store/manifest"
	"powercloud.unidatum.com/go/store/repository"
	"powercloud.unidatum.com/go/store/rollback"
)

// Testbed is a number of directories that serve as locations.
type Testbed struct {
	// Paths are the directories. They don't exist at first.
	Paths []string
	// Cluster is the cluster whose root key its stores use. Its header is at
	// the locations once Init was called.
	Cluster keystest.Cluster
	// Now is what its stores take for the time.
	Now time.Time
	// Wrap, unless nil, gives what stands in for the location with an index
	// in sets made from now on, such as one that fails.
	Wrap func(index int, location blob.Location) blob.Location
	// Quorum is that of sets made from now on; 0 means a majority.
	Quorum int
	// Warn is told the warnings of stores that are opened from now on; it
	// may be nil.
	Warn func(string)
	// Guard is that of stores and repositories that are opened from now on; it
	// may be nil.
	Guard *rollback.Guard

	t testing.TB
}

// New returns a testbed with n locations.
func New(t testing.TB, n int) *Testbed {
	t.Helper()
	b := &Testbed{t: t, Cluster: keystest.First(t), Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	top := t.TempDir()
	for i := range n {
		b.Paths = append(b.Paths, filepath.Join(top, fmt.Sprintf("location-%d", i)))
	}
	return b
}

// Set returns the locations with the given indexes, or all, as a set, in
// ascending order.
func (b *Testbed) Set(indexes ...int) *quorum.Set {
	b.t.Helper()
	if len(indexes) == 0 {
		for i := range b.Paths {
			indexes = append(indexes, i)
		}
	}
	return b.Ordered(slices.Sorted(slices.Values(indexes))...)
}

// Ordered returns the locations with the given indexes as a set, in that order.
func (b *Testbed) Ordered(indexes ...int) *quorum.Set {
	b.t.Helper()
	var locations []blob.Location
	for _, i := range indexes {
		location := b.location(b.Paths[i])
		if b.Wrap != nil {
			location = b.Wrap(i, location)
		}
		locations = append(locations, location)
	}
	set, err := quorum.New(locations, b.Quorum)
	if err != nil {
		b.t.Fatal(err)
	}
	return set
}

// location returns the directory as a location.
func (b *Testbed) location(path string) blob.Location {
	b.t.Helper()
	location, err := dir.New(path)
	if err != nil {
		b.t.Fatal(err)
	}
	return location
}

// Open returns the store over the locations with the given indexes, or over
// all. A cluster need not have been created.
func (b *Testbed) Open(indexes ...int) *store.Store {
	b.t.Helper()
	options := store.Options{Now: func() time.Time { return b.Now }, Warn: b.Warn, Guard: b.Guard}
	s, err := store.New(b.Set(indexes...), b.Cluster.Root(b.t), options)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// Init writes the cluster's key header to all locations.
func (b *Testbed) Init() {
	b.t.Helper()
	for i := range b.Paths {
		b.WriteHeader(i, b.Cluster.Header)
	}
}

// WriteHeader puts a key header at a location.
func (b *Testbed) WriteHeader(location int, header []byte) {
	b.t.Helper()
	if err := b.location(b.Paths[location]).Put(context.Background(), blob.Header(), header); err != nil {
		b.t.Fatal(err)
	}
}

// Unlock returns the repository at the locations with the given indexes, or at
// all, opened with the recovery key.
func (b *Testbed) Unlock(indexes ...int) *repository.Repository {
	b.t.Helper()
	headers, err := repository.Read(context.Background(), b.Set(indexes...))
	if err != nil {
		b.t.Fatal(err)
	}
	repo, err := headers.Unlock(repository.Secret{Recovery: &b.Cluster.Recovery})
	if err != nil {
		b.t.Fatal(err)
	}
	repo.Guard = b.Guard
	return repo
}

// Blobs returns the paths of a location's blobs of one kind, sorted.
func (b *Testbed) Blobs(location int, kind blob.Kind) []string {
	b.t.Helper()
	found, err := filepath.Glob(filepath.Join(b.Paths[location], kind.String(), "*", "*"))
	if err != nil {
		b.t.Fatal(err)
	}
	return found
}

// Invent has a location hold a manifest that nobody wrote, under the name that
// an object's would have.
func (b *Testbed) Invent(location int, object string) {
	b.t.Helper()
	sealer, err := manifest.NewSealer(b.Cluster.Root(b.t))
	if err != nil {
		b.t.Fatal(err)
	}
	err = b.location(b.Paths[location]).Put(context.Background(), sealer.BlobName(object), []byte("made up"))
	if err != nil {
		b.t.Fatal(err)
	}
}

// Alter changes the last byte of every file given.
func (b *Testbed) Alter(paths ...string) {
	b.t.Helper()
	b.change(paths, func(content []byte) { content[len(content)-1] ^= 1 })
}

// Upgrade makes the manifests in the files given ones of a later version of the
// format, sealed as nobody here can know.
func (b *Testbed) Upgrade(paths ...string) {
	b.t.Helper()
	b.change(paths, func(content []byte) {
		const version = 7
		content[version] = '9'
		content[len(content)-1] ^= 1
		content[version+1] ^= 1
	})
}

// change changes the content of files.
func (b *Testbed) change(paths []string, change func(content []byte)) {
	b.t.Helper()
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			b.t.Fatal(err)
		}
		change(content)
		if err := os.WriteFile(path+".new", content, 0o600); err != nil {
			b.t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			b.t.Fatal(err)
		}
	}
}

// Spoil puts a file in the place of a location, so that nothing works there.
func (b *Testbed) Spoil(location int) {
	b.t.Helper()
	if err := os.RemoveAll(b.Paths[location]); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(b.Paths[location], nil, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// Snapshot copies a location and returns a function that brings it back to
// that state.
func (b *Testbed) Snapshot(location int) (rollBack func()) {
	b.t.Helper()
	backup := b.t.TempDir()
	b.copyTree(b.Paths[location], filepath.Join(backup, "copy"))
	return func() {
		b.t.Helper()
		b.copyTree(filepath.Join(backup, "copy"), b.Paths[location])
	}
}

// copyTree replaces the directory to by a copy of the directory from.
func (b *Testbed) copyTree(from, to string) {
	b.t.Helper()
	if err := os.RemoveAll(to); err != nil {
		b.t.Fatal(err)
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		b.t.Fatal(err)
	}
}

// Source returns a source with the given content.
func Source(name string, content []byte) store.Source {
	return store.Source{
		Name: name,
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
		Size: int64(len(content)),
	}
}

// Put stores an object that must be stored.
func Put(t testing.TB, s *store.Store, name string, content []byte) store.Object {
	t.Helper()
	o, err := s.Put(context.Background(), Source(name, content), nil)
	if err != nil {
		t.Fatalf("put %s: %v", name, err)
	}
	return o
}

// Names returns the names of objects.
func Names(objects []store.Object) []string {
	var names []string
	for _, o := range objects {
		names = append(names, o.Name)
	}
	return names
}

// Content returns n bytes that look random and are the same for the same seed.
func Content(seed byte, n int) []byte {
	b := make([]byte, n)
	// Its Read never fails.
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b)
	return b
}

// WantContent checks an object's content.
func WantContent(t testing.TB, s *store.Store, name string, want []byte) {
	t.Helper()
	var got bytes.Buffer
	if _, err := s.Get(context.Background(), name, &got, nil); err != nil {
		t.Errorf("get %s: %v", name, err)
	} else if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("get %s gave other bytes than were put", name)
	}
}

// WantError checks that an error is of a kind, unless that is nil, and says
// certain words.
func WantError(t testing.TB, err, kind error, words ...string) {
	t.Helper()
	if err == nil {
		t.Error("no error")
		return
	}
	if kind != nil && !errors.Is(err, kind) {
		t.Errorf("error %q is not %q", err, kind)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error %q doesn't say %q", err, word)
		}
	}
}
