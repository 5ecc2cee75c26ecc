package store

import (
	"context"
	"errors"
	"fmt"
	"io"

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
// authenticated: several are read and decrypted ahead. (Written in any order, a
// large file takes a file system several times as long.) Progress is counted in
// bytes and may be nil.
func (s *Store) Get(ctx context.Context, name string, w io.Writer, progress Progress) (Object, error) {
	if progress == nil {
		progress = silent{}
	}
	result, err := s.live(ctx, name)
	if err != nil {
		return Object{}, err
	}
	progress.Expect(result.Manifest.Size)
	err = s.copyChunks(ctx, result.Manifest, w, progress)
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

// GetListed is Get for the object with an index below Len of what ListToGet returned.
// Of an object with one chunk, or none, it goes by the manifest that was read for the
// listing: the newest that locations had then, when the listing's caller had begun, and
// no older than the nodes' record. If that object was replaced or removed since, and its
// chunk collected, the manifest is read again, as Get does: nothing of it was written to
// w then.
func (s *Store) GetListed(ctx context.Context, listing *Listing, index int, w io.Writer, progress Progress) (Object, error) {
	o := listing.At(index)
	m := listing.manifest(index)
	if m == nil {
		return s.Get(ctx, o.Name, w, progress)
	}
	meter := progress
	if meter == nil {
		meter = silent{}
	}
	meter.Expect(m.Size)
	err := s.copyChunks(ctx, m, w, meter)
	var lost *lostChunkError
	switch {
	case err == nil:
		return o, nil
	case errors.As(err, &lost) && ctx.Err() == nil:
		meter.Expect(-m.Size)
		return s.Get(ctx, o.Name, w, progress)
	}
	return Object{}, fmt.Errorf("%s: %w", o.Name, err)
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
	limit := int64(m.ChunkSize(index) + chunk.Overhead)
	if err := s.set.Get(ctx, s.chunks.Name(ref), limit, verify); err != nil {
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

// copyChunks copies the chunks of an object to w one after the other, and reads
// the next ones ahead.
func (s *Store) copyChunks(ctx context.Context, m *manifest.Manifest, w io.Writer, progress Progress) error {
	if len(m.Chunks) == 1 && m.Size <= SmallObject {
		return s.copySmall(ctx, m, w, progress)
	}
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
			if err := write(w, piece.plaintext); err != nil {
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

// copySmall is copyChunks for a small object of one chunk.
func (s *Store) copySmall(ctx context.Context, m *manifest.Manifest, w io.Writer, progress Progress) error {
	plaintext, err := s.fetch(ctx, m, 0, &buffer{plaintext: make([]byte, m.Size)})
	if err != nil {
		return err
	}
	if err := write(w, plaintext); err != nil {
		return fmt.Errorf("writing the content: %w", err)
	}
	progress.Done(m.Size)
	return nil
}

// write writes a chunk's plaintext in parts. Given all of it at once, Linux takes
// the largest pages it has for a file's cache, and a virtual machine may have to
// get those from its host first, at several times the cost.
func write(w io.Writer, plaintext []byte) error {
	const part = 256 << 10
	for len(plaintext) > 0 {
		n, err := w.Write(plaintext[:min(len(plaintext), part)])
		if err != nil {
			return err
		}
		plaintext = plaintext[n:]
	}
	return nil
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
