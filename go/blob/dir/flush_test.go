package dir

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
)

// watch sees what its folders do, and makes it fail.
type watch struct {
	mu       sync.Mutex
	syncs    map[string]int
	failSync error         // of folders
	failFile error         // of files
	entered  chan struct{} // receives before each sync of a folder, if set
	leave    chan struct{} // is waited for in each sync of a folder, if set
}

type watchedFolder struct {
	folder
	watch *watch
	path  string
}

func (w *watch) open(path string) (folder, error) {
	inner, err := openRoot(path)
	if err != nil {
		return nil, err
	}
	return watchedFolder{inner, w, filepath.Base(path)}, nil
}

func (f watchedFolder) open(name string) (folder, error) {
	inner, err := f.folder.open(name)
	if err != nil {
		return nil, err
	}
	return watchedFolder{inner, f.watch, f.path + "/" + name}, nil
}

func (f watchedFolder) rename(name string, to folder, newName string) error {
	return f.folder.rename(name, to.(watchedFolder).folder, newName)
}

func (f watchedFolder) renameNew(name string, to folder, newName string) error {
	return f.folder.renameNew(name, to.(watchedFolder).folder, newName)
}

func (f watchedFolder) create(name string) (file, error) {
	inner, err := f.folder.create(name)
	if err != nil {
		return nil, err
	}
	return watchedFile{inner, f.watch}, nil
}

func (f watchedFolder) sync() error {
	f.watch.mu.Lock()
	f.watch.syncs[f.path]++
	err, entered, leave := f.watch.failSync, f.watch.entered, f.watch.leave
	f.watch.mu.Unlock()
	if entered != nil {
		entered <- struct{}{}
		<-leave
	}
	if err != nil {
		return err
	}
	return f.folder.sync()
}

type watchedFile struct {
	file
	watch *watch
}

func (f watchedFile) Sync() error {
	f.watch.mu.Lock()
	err := f.watch.failFile
	f.watch.mu.Unlock()
	if err != nil {
		return err
	}
	return f.file.Sync()
}

// take returns the syncs so far and begins again.
func (w *watch) take() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	syncs := w.syncs
	w.syncs = map[string]int{}
	return syncs
}

func watched(t *testing.T, limit int) (*Location, *watch) {
	t.Helper()
	w := &watch{syncs: map[string]int{}}
	l, err := newLocation(filepath.Join(t.TempDir(), "parent"), w.open, limit)
	if err != nil {
		t.Fatal(err)
	}
	put(t, l, blob.Header(), "h")
	flush(t, l)
	l, err = newLocation(filepath.Join(l.path, "pc"), w.open, limit)
	if err != nil {
		t.Fatal(err)
	}
	w.take()
	return l, w
}

func expectSyncs(t *testing.T, w *watch, want ...string) {
	t.Helper()
	got := w.take()
	for _, path := range want {
		if got[path] != 1 {
			t.Errorf("%s was synced %d times, want once", path, got[path])
		}
		delete(got, path)
	}
	if len(got) != 0 {
		t.Errorf("also synced: %v", got)
	}
}

func TestFlushSyncsWhatChanged(t *testing.T) {
	l, w := watched(t, placeCount)
	name := blobtest.Name(blob.KindChunk, 1)
	shard := "pc/chunk/" + name.String()[6:8]
	for range 5 {
		put(t, l, name, "data")
	}
	flush(t, l)
	expectSyncs(t, w, "parent", "pc", "pc/chunk", shard)
	flush(t, l)
	expectSyncs(t, w)
	put(t, l, name, "more")
	flush(t, l)
	expectSyncs(t, w, shard)
	put(t, l, blob.Header(), "h")
	flush(t, l)
	expectSyncs(t, w, "pc")
	if _, err := l.Stat(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	flush(t, l) // somebody else may have written it
	expectSyncs(t, w, shard)
	if err := l.Delete(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	flush(t, l)
	expectSyncs(t, w, shard)

	other, err := newLocation(l.path, w.open, 0)
	if err != nil {
		t.Fatal(err)
	}
	put(t, other, name, "of another process")
	flush(t, other)
	expectSyncs(t, w, "parent", "pc", "pc/chunk", shard)
}

func TestFlushShares(t *testing.T) {
	l, w := watched(t, placeCount)
	put(t, l, blob.Header(), "h")
	flush(t, l)
	w.take()
	w.entered, w.leave = make(chan struct{}), make(chan struct{})

	put(t, l, blob.Header(), "first")
	var wait sync.WaitGroup
	call := func() {
		wait.Go(func() {
			if err := l.Flush(t.Context()); err != nil {
				t.Errorf("Flush: %v", err)
			}
		})
	}
	call()
	<-w.entered // the first is syncing; what follows comes too late for it
	put(t, l, blob.Header(), "second")
	const late = 20
	for range late {
		call()
	}
	// One that gives up doesn't keep the others from theirs.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Flush(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Flush: %v", err)
	}
	// Wait until all of them can only be waiting: they have joined one round.
	close(w.leave)
	finished := make(chan struct{})
	go func() { wait.Wait(); close(finished) }()
	for again := true; again; {
		select {
		case <-w.entered:
		case <-finished:
			again = false
		}
	}
	// A late call may come after the second round and find nothing to do, but no
	// order of them needs a third.
	if n := w.take()["pc"]; n != 2 {
		t.Errorf("the directory was synced %d times for two rounds", n)
	}
}

func TestFlushFails(t *testing.T) {
	l, w := watched(t, placeCount)
	put(t, l, blob.Header(), "h")
	broken := errors.New("input/output error")
	w.failSync = broken
	if err := l.Flush(t.Context()); !errors.Is(err, broken) {
		t.Errorf("Flush: %v", err)
	}
	w.failSync = nil
	if err := l.Flush(t.Context()); !errors.Is(err, broken) {
		t.Errorf("Flush after one that failed: %v, want the same: nobody knows what was lost", err)
	}
}

func TestFileSyncFails(t *testing.T) {
	l, w := watched(t, placeCount)
	name := blobtest.Name(blob.KindChunk, 1)
	put(t, l, name, "earlier")
	broken := errors.New("input/output error")
	w.failFile = broken
	if err := l.Put(t.Context(), name, []byte("later")); !errors.Is(err, broken) {
		t.Errorf("Put: %v", err)
	}
	expect(t, l, name, "earlier")
	if got := files(t, l.path); len(got) != 1 {
		t.Errorf("the directory holds %v", got)
	}
}
