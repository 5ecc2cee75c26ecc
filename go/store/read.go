package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/sync/errgroup"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/store/chunk"
	"powercloud.unidatum.com/go/store/manifest"
)

// ErrChanged means that an object was overwritten or removed, and its chunks
// collected, while it was being read.
var ErrChanged = errors.New("the object changed while it was being read; try again")

// Stat returns what is known of an object without reading its content.
func (s *Store) Stat(ctx context.Context, name string) (Object, error) {
	result, err := s.live(ctx, name)
	if err != nil {
		return Object{}, err
	}
	return object(result.Manifest), nil
}

// Get writes an object's content to w, in order, each chunk once it is
// authenticated. Progress is counted in bytes and may be nil.
func (s *Store) Get(ctx context.Context, name string, w io.Writer, progress Progress) (Object, error) {
	return s.read(ctx, name, progress, func(ctx context.Context, m *manifest.Manifest, progress Progress) error {
		return s.inOrder(ctx, m, w, progress)
	})
}

// GetAt writes an object's content to w, several chunks at once and in any
// order, each once it is authenticated. When it fails, what w holds is
// incomplete. Progress is counted in bytes and may be nil.
func (s *Store) GetAt(ctx context.Context, name string, w io.WriterAt, progress Progress) (Object, error) {
	return s.read(ctx, name, progress, func(ctx context.Context, m *manifest.Manifest, progress Progress) error {
		return s.anyOrder(ctx, m, w, progress)
	})
}

// read finds the newest version of an object and has its chunks copied.
func (s *Store) read(ctx context.Context, name string, progress Progress,
	copyChunks func(context.Context, *manifest.Manifest, Progress) error) (Object, error) {
	if progress == nil {
		progress = silent{}
	}
	result, err := s.live(ctx, name)
	if err != nil {
		return Object{}, err
	}
	progress.Expect(result.Manifest.Size)
	err = copyChunks(ctx, result.Manifest, progress)
	if err == nil {
		return object(result.Manifest), nil
	}
	var lost *lostChunkError
	if errors.As(err, &lost) && ctx.Err() == nil {
		now := s.find(ctx, name)
		if now.Manifest != nil && now.Manifest.Version != result.Manifest.Version {
			err = ErrChanged
		}
	}
	return Object{}, fmt.Errorf("%s: %w", name, err)
}

// errNowhere means that every location answered and none has the chunk.
var errNowhere = errors.New("no location has it; bring back one that does, or put the object again")

// lostChunkError means that no location gave an authentic copy of a chunk.
type lostChunkError struct {
	index int
	err   error
}

func (e *lostChunkError) Error() string {
	return fmt.Sprintf("chunk %d can't be read: %v", e.index, e.err)
}

func (e *lostChunkError) Unwrap() error { return e.err }

// fetch reads a chunk, from the first location that has an authentic copy, and
// returns its plaintext, which is in the buffer.
func (s *Store) fetch(ctx context.Context, m *manifest.Manifest, index int, buffer *buffer) ([]byte, error) {
	ref := m.Chunks[index]
	var plaintext []byte
	verify := func(sealed []byte) error {
		var err error
		plaintext, err = s.chunks.Open(buffer.plaintext, ref, sealed)
		if err == nil && len(plaintext) != m.ChunkSize(index) {
			err = chunk.ErrCorrupt
		}
		return err
	}
	if _, err := s.set.Get(ctx, s.chunks.Name(ref), buffer.sealed, int64(chunk.MaxBlob), verify); err != nil {
		if ctxErr := ctx.Err(); ctxErr != nil {
			return nil, ctxErr
		}
		if errors.Is(err, blob.ErrNotFound) {
			err = errNowhere
		}
		return nil, &lostChunkError{index, err}
	}
	return plaintext, nil
}

// anyOrder copies the chunks of an object to w, several at once.
func (s *Store) anyOrder(ctx context.Context, m *manifest.Manifest, w io.WriterAt, progress Progress) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(s.options.Workers)
	// Several writes to one file wait for each other in the system, spinning:
	// waiting here leaves the processor to those who decrypt.
	var writing sync.Mutex
	for index := range m.Chunks {
		buffer, err := s.buffers.take(groupCtx)
		if err != nil {
			break
		}
		group.Go(func() error {
			defer buffer.release()
			plaintext, err := s.fetch(groupCtx, m, index, buffer)
			if err != nil {
				return err
			}
			writing.Lock()
			_, err = w.WriteAt(plaintext, int64(index)*chunk.Size)
			writing.Unlock()
			if err != nil {
				return fmt.Errorf("writing the content: %w", err)
			}
			progress.Done(int64(len(plaintext)))
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// inOrder copies the chunks of an object to w one after the other, and reads
// the next ones ahead.
func (s *Store) inOrder(ctx context.Context, m *manifest.Manifest, w io.Writer, progress Progress) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ahead := s.readAhead(ctx, m)
	var failure error
	for slot := range ahead {
		piece := <-slot
		if failure == nil {
			failure = piece.err
		}
		if failure == nil {
			if _, err := w.Write(piece.plaintext); err != nil {
				failure = fmt.Errorf("writing the content: %w", err)
			}
			progress.Done(int64(len(piece.plaintext)))
		}
		piece.buffer.release()
		if failure != nil {
			// What is being read ahead is still waited for.
			cancel()
		}
	}
	if failure == nil {
		failure = ctx.Err()
	}
	return failure
}

// piece is a chunk that was read ahead.
type piece struct {
	buffer    *buffer
	plaintext []byte
	err       error
}

// readAhead starts to fetch the chunks of an object, as many at once as there
// are buffers, and returns them in order. The channel is closed after the last
// one, or early when the context ends; it must be read until then.
func (s *Store) readAhead(ctx context.Context, m *manifest.Manifest) <-chan chan piece {
	ahead := make(chan chan piece, s.options.Workers)
	buffers := s.buffers.share()
	go func() {
		defer close(ahead)
		for index := range m.Chunks {
			buffer, err := buffers.take(ctx)
			if err != nil {
				return
			}
			slot := make(chan piece, 1)
			go func() {
				plaintext, err := s.fetch(ctx, m, index, buffer)
				slot <- piece{buffer, plaintext, err}
			}()
			ahead <- slot
		}
	}()
	return ahead
}
