package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/store"
	"powercloud.unidatum.com/go/store/chunk"
	"powercloud.unidatum.com/go/store/storetest"
)

func TestPutAndGet(t *testing.T) {
	b := storetest.New(t, 3)
	s := b.Open()
	for _, size := range []int{0, 1, 18, chunk.Size - 1, chunk.Size, chunk.Size + 1, 5*chunk.Size + 7} {
		name := fmt.Sprintf("objects/%d", size)
		data := storetest.Content(byte(size), size)
		o := storetest.Put(t, s, name, data)
		if want := (size + chunk.Size - 1) / chunk.Size; o.Size != int64(size) || o.Chunks != want {
			t.Errorf("stored %d bytes in %d chunks, want %d in %d", o.Size, o.Chunks, size, want)
		}
		storetest.WantContent(t, s, name, data)
	}
}

func TestManyWorkersOneBuffer(t *testing.T) {
	// Reading ahead must not starve when other reads hold the buffers.
	b := storetest.New(t, 1)
	s := b.Open()
	data := storetest.Content(1, 20*chunk.Size)
	storetest.Put(t, s, "big", data)
	done := make(chan error, 4)
	for range cap(done) {
		go func() {
			var got bytes.Buffer
			_, err := s.Get(context.Background(), "big", &got, nil)
			if err == nil && !bytes.Equal(got.Bytes(), data) {
				err = errors.New("got other bytes")
			}
			done <- err
		}()
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestSameContentIsStoredOnce(t *testing.T) {
	b := storetest.New(t, 2)
	s := b.Open()
	data := storetest.Content(1, 2*chunk.Size+1)
	storetest.Put(t, s, "one", data)
	storetest.Put(t, s, "two", data)
	if n := len(b.Blobs(0, blob.KindChunk)); n != 3 {
		t.Errorf("two objects with the same content take %d chunks, want 3", n)
	}
}

func TestPutAllKeepsOrderAndGoesOnPastUnreadableSources(t *testing.T) {
	b := storetest.New(t, 2)
	s := b.Open()
	broken := storetest.Source("b", nil)
	broken.Open = func() (io.ReadCloser, error) { return nil, os.ErrPermission }
	sources := []store.Source{storetest.Source("c", []byte("1")), broken, storetest.Source("../a", nil), storetest.Source("a", []byte("2")), storetest.Source("c", []byte("3"))}
	var stored []string
	err := s.PutAll(context.Background(), func(yield func(store.Source) bool) {
		for _, source := range sources {
			if !yield(source) {
				return
			}
		}
	}, nil, func(objects []store.Object) { stored = append(stored, storetest.Names(objects)...) })
	storetest.WantError(t, err, os.ErrPermission, "b: ", "../a")
	if got := strings.Join(stored, " "); got != "c a c" {
		t.Errorf("stored %q, want %q", got, "c a c")
	}
	storetest.WantContent(t, s, "c", []byte("3"))
	storetest.WantContent(t, s, "a", []byte("2"))
}

func TestNewestVersionWins(t *testing.T) {
	b := storetest.New(t, 3)
	storetest.Put(t, b.Open(), "x", []byte("old"))
	b.Now = b.Now.Add(-24 * time.Hour) // A clock that is behind.
	storetest.Put(t, b.Open(0, 1), "x", []byte("new"))
	storetest.WantContent(t, b.Open(), "x", []byte("new"))
	storetest.WantContent(t, b.Open(1, 2), "x", []byte("new"))
}

func TestStaleLocationDoesNotBringBackTheDeleted(t *testing.T) {
	b := storetest.New(t, 3)
	storetest.Put(t, b.Open(), "x", []byte("content"))
	if err := b.Open(0, 1).Remove(context.Background(), "x"); err != nil {
		t.Fatal(err)
	}
	_, err := b.Open().Get(context.Background(), "x", io.Discard, nil)
	storetest.WantError(t, err, store.ErrNotFound, "x")
	storetest.WantError(t, b.Open().Remove(context.Background(), "x"), store.ErrNotFound, "x")
	objects, err := b.Open().List(context.Background(), "")
	if err != nil || objects.Len() != 0 {
		t.Errorf("list has %v, %v after the delete", objects, err)
	}
	storetest.Put(t, b.Open(), "x", []byte("again"))
	storetest.WantContent(t, b.Open(), "x", []byte("again"))
}

func TestAlteredCopiesAreNeverReturned(t *testing.T) {
	b := storetest.New(t, 2)
	data := storetest.Content(1, chunk.Size+1)
	storetest.Put(t, b.Open(), "x", data)
	b.Alter(b.Blobs(0, blob.KindChunk)...)
	storetest.WantContent(t, b.Open(), "x", data)
	b.Alter(b.Blobs(1, blob.KindChunk)...)
	_, err := b.Open().Get(context.Background(), "x", io.Discard, nil)
	storetest.WantError(t, err, chunk.ErrCorrupt, "x: ", "chunk 0", "location-0", "location-1")
}

func TestSwappedChunksAreNeverReturned(t *testing.T) {
	b := storetest.New(t, 1)
	storetest.Put(t, b.Open(), "x", storetest.Content(1, 100))
	storetest.Put(t, b.Open(), "y", storetest.Content(2, 100))
	chunks := b.Blobs(0, blob.KindChunk)
	temporary := chunks[0] + ".swap"
	for _, move := range [][2]string{{chunks[0], temporary}, {chunks[1], chunks[0]}, {temporary, chunks[1]}} {
		if err := os.Rename(move[0], move[1]); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"x", "y"} {
		_, err := b.Open().Get(context.Background(), name, io.Discard, nil)
		storetest.WantError(t, err, chunk.ErrCorrupt, name)
	}
}

func TestCorruptManifestIsNotTheSameAsNone(t *testing.T) {
	b := storetest.New(t, 2)
	storetest.Put(t, b.Open(0), "x", []byte("content"))
	b.Alter(b.Blobs(0, blob.KindManifest)...)
	_, err := b.Open().Get(context.Background(), "x", io.Discard, nil)
	if errors.Is(err, store.ErrNotFound) {
		t.Errorf("error %q says that an object whose manifest is corrupt doesn't exist", err)
	}
	storetest.WantError(t, err, nil, "x: ", "location-0")
	_, err = b.Open().List(context.Background(), "")
	storetest.WantError(t, err, nil, "1 of 1 manifests", "pcctl check")
}

func TestUnreachableIsNotNotFound(t *testing.T) {
	b := storetest.New(t, 3)
	storetest.Put(t, b.Open(2), "x", []byte("content"))
	b.Spoil(2)
	_, err := b.Open().Get(context.Background(), "x", io.Discard, nil)
	if errors.Is(err, store.ErrNotFound) {
		t.Errorf("error %q says that an object that may be at an unreachable location doesn't exist", err)
	}
	storetest.WantError(t, err, nil, "x: ", "location-2")
}

func TestWriteNeedsAQuorum(t *testing.T) {
	b := storetest.New(t, 3)
	b.Spoil(1)
	b.Spoil(2)
	_, err := b.Open().Put(context.Background(), storetest.Source("x", []byte("content")), nil)
	storetest.WantError(t, err, nil, "x: 1/3 backends succeeded, need 2", "location-1", "location-2")
	if n := len(b.Blobs(0, blob.KindManifest)); n != 0 {
		t.Errorf("a put that failed left %d manifests", n)
	}
}

func TestRolledBackLocationDoesNotHideTheNewVersion(t *testing.T) {
	b := storetest.New(t, 2)
	storetest.Put(t, b.Open(), "x", []byte("old"))
	rollBack := b.Snapshot(0)
	b.Now = b.Now.Add(time.Hour)
	storetest.Put(t, b.Open(), "x", []byte("new"))
	rollBack()
	storetest.WantContent(t, b.Open(), "x", []byte("new"))
}

func TestListByPrefix(t *testing.T) {
	b := storetest.New(t, 2)
	s := b.Open()
	for _, name := range []string{"b", "a/2", "a/1", "ab"} {
		storetest.Put(t, s, name, []byte(name))
	}
	for prefix, want := range map[string]string{"": "a/1 a/2 ab b", "a": "a/1 a/2 ab", "a/": "a/1 a/2", "c": ""} {
		objects, err := s.List(context.Background(), prefix)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for o := range objects.Objects() {
			names = append(names, o.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("list %q gave %q, want %q", prefix, got, want)
		}
	}
}

func TestListThatMayBeIncompleteIsAnError(t *testing.T) {
	b := storetest.New(t, 3)
	storetest.Put(t, b.Open(), "x", []byte("content"))
	b.Spoil(0)
	if objects, err := b.Open().List(context.Background(), ""); err != nil || objects.Len() != 1 {
		t.Errorf("with one of three locations gone, list gave %v, %v", objects, err)
	}
	b.Spoil(1)
	_, err := b.Open().List(context.Background(), "")
	storetest.WantError(t, err, nil, "location-1")
}

func TestNames(t *testing.T) {
	for _, name := range []string{"a", "a/b.txt", "..a", "a..", "ä", "a b", strings.Repeat("x", store.MaxName)} {
		if err := store.ValidName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "a/.", "a\x00b", "a\nb", "\x1b[2J",
		"\xff", strings.Repeat("x", store.MaxName+1)} {
		if store.ValidName(name) == nil {
			t.Errorf("%q is valid", name)
		}
		if err := store.ValidName(name); err != nil && strings.ContainsAny(err.Error(), "\x00\n\x1b") {
			t.Errorf("the error for %q has control characters", name)
		}
	}
}

func TestCancelledPutLeavesNothingVisible(t *testing.T) {
	b := storetest.New(t, 1)
	ctx, cancel := context.WithCancel(context.Background())
	s := b.Open()
	endless := storetest.Source("x", nil)
	endless.Open = func() (io.ReadCloser, error) { return io.NopCloser(&cancelling{cancel: cancel}), nil }
	_, err := s.Put(ctx, endless, nil)
	storetest.WantError(t, err, context.Canceled)
	if n := len(b.Blobs(0, blob.KindManifest)); n != 0 {
		t.Errorf("a cancelled put left %d manifests", n)
	}
	if files, _ := os.ReadDir(filepath.Join(b.Paths[0], "tmp")); len(files) != 0 {
		t.Errorf("a cancelled put left %d temporary files", len(files))
	}
	// All buffers came back: the store still works.
	storetest.Put(t, s, "y", storetest.Content(1, 20*chunk.Size))
}

// cancelling is endless content that cancels after a few chunks.
type cancelling struct {
	cancel context.CancelFunc
	read   int
}

func (c *cancelling) Read(p []byte) (int, error) {
	c.read += len(p)
	if c.read > 12*chunk.Size {
		c.cancel()
	}
	rand.NewChaCha8([32]byte{byte(c.read >> 20)}).Read(p)
	return len(p), nil
}

// TestObjectIsStoredAgainWhileItIsRead has the buffers of one store serve both
// ends of a pipe: the reader must leave the writer one.
func TestObjectIsStoredAgainWhileItIsRead(t *testing.T) {
	s := storetest.New(t, 1).Open()
	data := storetest.Content(1, 20*chunk.Size)
	storetest.Put(t, s, "big", data)
	// Ends the test if they wait for each other.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, in := io.Pipe()
	go func() {
		_, err := s.Get(ctx, "big", in, nil)
		in.CloseWithError(err)
	}()
	context.AfterFunc(ctx, func() { out.CloseWithError(ctx.Err()) })
	copied := store.Source{Name: "copy", Size: store.UnknownSize, Open: func() (io.ReadCloser, error) { return out, nil }}
	if _, err := s.Put(ctx, copied, nil); err != nil {
		t.Fatal(err)
	}
	storetest.WantContent(t, s, "copy", data)
}
