package store

import (
	"context"

	"powercloud.unidatum.com/go/store/chunk"
)

// buffer is the memory that a chunk takes on its way. The plaintext and the blob
// each begin where a page does, or copying them from and to files would take the
// processor several times as long: a blob's header is 8 bytes.
type buffer struct {
	plaintext []byte // chunk.Size bytes
	sealed    []byte // chunk.MaxBlob bytes
}

// buffers is a bounded supply of buffers. It bounds the memory that the store
// uses, however large the objects are.
type buffers struct {
	free   chan *buffer
	unmade chan struct{}
}

// newBuffers returns a supply of n buffers, made when they are first needed.
func newBuffers(n int) *buffers {
	b := &buffers{free: make(chan *buffer, n), unmade: make(chan struct{}, n)}
	for range n {
		b.unmade <- struct{}{}
	}
	return b
}

// take waits for a buffer.
func (b *buffers) take(ctx context.Context) (*buffer, error) {
	select {
	case taken := <-b.free:
		return taken, nil
	default:
	}
	select {
	case taken := <-b.free:
		return taken, nil
	case <-b.unmade:
		return &buffer{make([]byte, chunk.Size), make([]byte, chunk.MaxBlob)}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// give returns a buffer that take handed out.
func (b *buffers) give(taken *buffer) { b.free <- taken }
