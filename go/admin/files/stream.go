package files

import (
	"context"
	"io"
	"os"
)

// streamBuffer is how much is read or written at once.
const streamBuffer = 256 << 10

// Reader returns a reader that fails once ctx ends, even while r, such as a
// pipe or a terminal, has nothing to give. The read that is then under way
// stays behind until r gives something or the process ends.
func Reader(ctx context.Context, r io.Reader) io.Reader {
	return &reader{ctx: ctx, source: r}
}

type reader struct {
	ctx    context.Context
	source io.Reader
	buffer []byte
}

type outcome struct {
	n   int
	err error
}

func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, context.Cause(r.ctx)
	}
	if r.buffer == nil {
		r.buffer = make([]byte, streamBuffer)
	}
	buffer := r.buffer[:min(len(p), len(r.buffer))]
	done := make(chan outcome, 1)
	go func() {
		n, err := r.source.Read(buffer)
		done <- outcome{n, err}
	}()
	select {
	case o := <-done:
		return copy(p, buffer[:o.n]), o.err
	case <-r.ctx.Done():
		return 0, context.Cause(r.ctx)
	}
}

// Writer returns a writer that fails once ctx ends, even while w, such as a
// pipe that nobody reads, takes nothing. The write that is then under way
// stays behind until w takes it or the process ends.
func Writer(ctx context.Context, w io.Writer) io.Writer {
	return &writer{ctx: ctx, sink: w}
}

type writer struct {
	ctx    context.Context
	sink   io.Writer
	buffer []byte
}

func (w *writer) Write(p []byte) (int, error) {
	if w.buffer == nil {
		w.buffer = make([]byte, streamBuffer)
	}
	written := 0
	for written < len(p) {
		if err := w.ctx.Err(); err != nil {
			return written, context.Cause(w.ctx)
		}
		// The caller's bytes are its own again once it is told of the end.
		piece := w.buffer[:copy(w.buffer, p[written:])]
		done := make(chan outcome, 1)
		go func() {
			n, err := w.sink.Write(piece)
			done <- outcome{n, err}
		}()
		select {
		case o := <-done:
			written += o.n
			if o.err != nil {
				return written, o.err
			}
			if o.n < len(piece) {
				return written, io.ErrShortWrite
			}
		case <-w.ctx.Done():
			return written, context.Cause(w.ctx)
		}
	}
	return written, nil
}

// Open opens what may be a pipe or a device, and fails once ctx ends, even while
// it waits for somebody to open the pipe's other end. Opening it stays behind then
// until somebody does or the process ends.
func Open(ctx context.Context, path string, flag int) (*os.File, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	type result struct {
		file *os.File
		err  error
	}
	opened := make(chan result)
	go func() {
		file, err := os.OpenFile(path, flag, 0)
		select {
		case opened <- result{file, err}:
		case <-ctx.Done():
			if err == nil {
				// Nothing was read from it or written to it.
				_ = file.Close()
			}
		}
	}()
	select {
	case r := <-opened:
		return r.file, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
