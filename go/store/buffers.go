package store

import (
	"context"

	"powercloud.unidatum.com/go/store/chunk"
)

// buffers is a bounded supply of buffers of chunk.MaxBlob bytes. It bounds the
// memory that the store uses, however large the objects are.
type buffers struct {
	free   chan []byte
	unmade chan struct{}
}

// newBuffers returns a supply of n buffers, made when they are first needed.
func newBuffers(n int) *buffers {
	b := &buffers{free: make(chan []byte, n), unmade: make(chan struct{}, n)}
	for range n {
		b.unmade <- struct{}{}
	}
	return b
}

// take waits for a buffer.
func (b *buffers) take(ctx context.Context) ([]byte, error) {
	select {
	case buffer := <-b.free:
		return buffer, nil
	default:
	}
	select {
	case buffer := <-b.free:
		return buffer, nil
	case <-b.unmade:
		return make([]byte, chunk.MaxBlob), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// give returns a buffer that take handed out.
func (b *buffers) give(buffer []byte) {
	b.free <- buffer[:chunk.MaxBlob]
}
