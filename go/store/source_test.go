package store_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"powercloud.unidatum.com/go/store"
	"powercloud.unidatum.com/go/store/chunk"
	"powercloud.unidatum.com/go/store/storetest"
)

// countedFile is an open file that tells when it is closed.
type countedFile struct {
	*os.File
	open *atomic.Int64
}

func (f countedFile) Close() error {
	f.open.Add(-1)
	return f.File.Close()
}

// fileSource returns a file of that content as a source. opened is called once
// it is open, with its path.
func fileSource(t *testing.T, name string, content []byte, open *atomic.Int64, opened func(path string)) store.Source {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return store.Source{Name: name, Size: int64(len(content)), Open: func() (io.ReadCloser, error) {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		open.Add(1)
		if opened != nil {
			opened(path)
		}
		return countedFile{file, open}, nil
	}}
}

func TestFilesOfAllSizes(t *testing.T) {
	s := storetest.New(t, 2).Open()
	var open atomic.Int64
	for _, size := range []int{0, 1, chunk.Size, chunk.Size + 1, 2 * chunk.Size, 9*chunk.Size + 3} {
		data := storetest.Content(byte(size), size)
		o, err := s.Put(context.Background(), fileSource(t, "x", data, &open, nil), nil)
		if want := (size + chunk.Size - 1) / chunk.Size; err != nil || o.Size != int64(size) || o.Chunks != want {
			t.Errorf("stored %d bytes in %d chunks, %v; want %d in %d", o.Size, o.Chunks, err, size, want)
		}
		storetest.WantContent(t, s, "x", data)
	}
	if n := open.Load(); n != 0 {
		t.Errorf("%d files were left open", n)
	}
}

func TestFileThatChangesWhileItIsRead(t *testing.T) {
	s := storetest.New(t, 1).Open()
	var open atomic.Int64
	large, small := storetest.Content(1, 6*chunk.Size), storetest.Content(2, 1000)
	grow := func(path string) {
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err == nil {
			_, err = file.Write(bytes.Repeat(small, 5000))
		}
		if err := errors.Join(err, file.Close()); err != nil {
			t.Error(err)
		}
	}

	// One that was small when it was found is read to its end.
	if _, err := s.Put(context.Background(), fileSource(t, "grown", small, &open, grow), nil); err != nil {
		t.Fatal(err)
	}
	storetest.WantContent(t, s, "grown", append(slices.Clone(small), bytes.Repeat(small, 5000)...))

	// A large one that is cut short isn't stored, and the others are.
	shrunk := fileSource(t, "shrunk", large, &open, nil)
	openShrunk := shrunk.Open
	shrunk.Open = func() (io.ReadCloser, error) {
		file, err := openShrunk()
		if err != nil {
			return nil, err
		}
		// Its size is asked for when it is opened, so it changes after that.
		return shrinking{file.(countedFile)}, nil
	}
	sources := []store.Source{
		fileSource(t, "before", large, &open, nil), shrunk, fileSource(t, "after", small, &open, nil),
	}
	var stored []string
	err := s.PutAll(context.Background(), slices.Values(sources), nil, func(objects []store.Object) { stored = append(stored, storetest.Names(objects)...) })
	var unreadable *store.SourceError
	if !errors.As(err, &unreadable) || unreadable.Name != "shrunk" || !strings.Contains(err.Error(), "cut short") {
		t.Errorf("error %v, want that shrunk was cut short", err)
	}
	if want := []string{"before", "after"}; !slices.Equal(stored, want) {
		t.Errorf("stored %q, want %q", stored, want)
	}
	if _, err := s.Stat(context.Background(), "shrunk"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("what was cut short is found: %v", err)
	}
	if n := open.Load(); n != 0 {
		t.Errorf("%d files were left open", n)
	}
}

// shrinking is a file that is cut to a third once its size is known.
type shrinking struct{ countedFile }

func (f shrinking) Stat() (os.FileInfo, error) {
	info, err := f.File.Stat()
	if err != nil {
		return nil, err
	}
	return info, os.Truncate(f.Name(), info.Size()/3)
}

func TestInterruptedPutClosesItsFiles(t *testing.T) {
	b := storetest.New(t, 1)
	var open atomic.Int64
	for _, size := range []int{10, 40 * chunk.Size} {
		ctx, cancel := context.WithCancel(context.Background())
		source := fileSource(t, "x", storetest.Content(1, size), &open, func(string) { cancel() })
		if _, err := b.Open().Put(ctx, source, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want that it was cancelled", err)
		}
		if n := open.Load(); n != 0 {
			t.Errorf("%d files were left open", n)
		}
	}
}
