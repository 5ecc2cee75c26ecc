package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync/atomic"

	"powercloud.unidatum.com/go/store/chunk"
)

// handOutSource hands out a source: a small one whole, a large file by its
// chunks, so that every processor reads what it then hashes and seals. What can
// only be read from its start to its end, such as a pipe, is read here and handed
// out chunk by chunk.
func (w *writer) handOutSource(ctx context.Context, p *pending) error {
	w.progress.Expect(max(p.source.Size, 0))
	if err := ValidName(p.source.Name); err != nil {
		p.fail(err)
		return nil
	}
	if 0 <= p.source.Size && p.source.Size <= chunk.Size {
		p.batch.add(1)
		return w.give(ctx, func(ctx context.Context) error {
			defer p.batch.add(-1)
			return w.storeWhole(ctx, p)
		})
	}
	content, err := p.source.Open()
	if err != nil {
		p.fail(err)
		return nil
	}
	if file, size := largeFile(content); file != nil {
		return w.handOutFile(ctx, p, file, size)
	}
	defer content.Close()
	return w.handOutStream(ctx, p, content)
}

// readError says that reading a source failed.
func readError(err error) error { return fmt.Errorf("reading the content: %w", err) }

// atEnd reports whether a read of a chunk found the content's end.
func atEnd(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// storeWhole stores a source from its start to its end.
func (w *writer) storeWhole(ctx context.Context, p *pending) error {
	content, err := p.source.Open()
	if err != nil {
		p.fail(err)
		return nil
	}
	defer content.Close()
	if p.source.Size > SmallObject {
		return w.storeContent(ctx, p, content)
	}
	buffer, err := w.store.small.take(ctx)
	if err != nil {
		return err
	}
	n, ref, err := w.store.chunks.Read(content, buffer.plaintext)
	switch {
	case err != nil && !atEnd(err):
		p.fail(readError(err))
	case n > SmallObject:
		// It has grown.
		begin := bytes.NewReader(bytes.Clone(buffer.plaintext[:n]))
		buffer.release()
		return w.storeContent(ctx, p, io.MultiReader(begin, content))
	case n > 0:
		p.grow(n)
		err = w.storeChunk(ctx, p, 0, buffer, n, ref)
		buffer.release()
		return err
	}
	buffer.release()
	return nil
}

// storeContent stores content from its start to its end.
func (w *writer) storeContent(ctx context.Context, p *pending, content io.Reader) error {
	buffer, err := w.buffers.take(ctx)
	if err != nil {
		return err
	}
	defer buffer.release()
	for index := 0; ; index++ {
		n, ref, err := w.store.chunks.Read(content, buffer.plaintext)
		if err != nil && !atEnd(err) {
			p.fail(readError(err))
			return nil
		}
		if n > 0 {
			p.grow(n)
			if err := w.storeChunk(ctx, p, index, buffer, n, ref); err != nil {
				return err
			}
		}
		if err != nil {
			return nil
		}
	}
}

// handOutStream cuts a stream into chunks and hands them out.
func (w *writer) handOutStream(ctx context.Context, p *pending, content io.Reader) error {
	for index := 0; ; index++ {
		buffer, err := w.buffers.take(ctx)
		if err != nil {
			return err
		}
		n, err := io.ReadFull(content, buffer.plaintext)
		if n == 0 || (err != nil && !atEnd(err)) {
			buffer.release()
		}
		if err != nil && !atEnd(err) {
			p.fail(readError(err))
			return nil
		}
		if n > 0 {
			p.grow(n)
			given := w.give(ctx, func(ctx context.Context) error {
				defer buffer.release()
				ref := w.store.chunks.Identify(buffer.plaintext[:n])
				return w.storeChunk(ctx, p, index, buffer, n, ref)
			})
			if given != nil {
				buffer.release()
				return given
			}
		}
		if err != nil {
			return nil
		}
	}
}

// file is an open file that several goroutines read, each a chunk.
type file struct {
	io.ReaderAt
	close func() error
	users atomic.Int64
}

// leave is called by each user once. The last one closes the file.
func (f *file) leave() {
	if f.users.Add(-1) == 0 {
		// It was only read: there is nothing that closing could lose.
		_ = f.close()
	}
}

// largeFile returns a file that can be read anywhere and has more than one chunk,
// and its size. Other content is nil: also a regular file that claims to be
// smaller than it turns out, as those of /proc do.
func largeFile(content io.ReadCloser) (*file, int64) {
	described, ok := content.(interface {
		io.ReaderAt
		Stat() (fs.FileInfo, error)
	})
	if !ok {
		return nil, 0
	}
	info, err := described.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() <= chunk.Size {
		return nil, 0
	}
	return &file{ReaderAt: described, close: content.Close}, info.Size()
}

// handOutFile hands out a file's chunks, as far as its size when it was opened.
func (w *writer) handOutFile(ctx context.Context, p *pending, f *file, size int64) error {
	f.users.Add(1)
	defer f.leave()
	for index := 0; ; index++ {
		offset := int64(index) * chunk.Size
		if offset >= size || p.failed() != nil {
			return nil
		}
		n := int(min(size-offset, chunk.Size))
		p.grow(n)
		f.users.Add(1)
		err := w.give(ctx, func(ctx context.Context) error {
			defer f.leave()
			return w.storePiece(ctx, p, index, io.NewSectionReader(f, offset, int64(n)), n)
		})
		if err != nil {
			f.leave()
			return err
		}
	}
}

// storePiece stores a file's n bytes that are one of its chunks.
func (w *writer) storePiece(ctx context.Context, p *pending, index int, piece io.Reader, n int) error {
	buffer, err := w.buffers.take(ctx)
	if err != nil {
		return err
	}
	defer buffer.release()
	got, ref, err := w.store.chunks.Read(piece, buffer.plaintext)
	switch {
	case err != nil && !atEnd(err):
		p.fail(readError(err))
	case got < n:
		p.fail(errors.New("it was cut short while it was read; try again"))
	default:
		return w.storeChunk(ctx, p, index, buffer, n, ref)
	}
	p.batch.add(-1)
	return nil
}
