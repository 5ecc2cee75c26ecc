package store

import (
	"context"

	"powercloud.unidatum.com/go/store/chunk"
)

// buffer is the memory that a chunk takes on its way. The plaintext and the blob
// each begin where a page does, or copying them from and to files would take the
// processor several times as long: a blob's header is 8 bytes.
type buffer struct {
	plaintext []byte // of the size of the content
	sealed    []byte // chunk.Overhead bytes more
	home      *buffers
}

// release gives a buffer back to those that it is one of.
func (b *buffer) release() { b.home.free <- b }

// buffers is a bounded supply of buffers. It bounds the memory that the store
// uses, however large the objects are.
type buffers struct {
	size   int
	free   chan *buffer
	unmade chan struct{}
}

// newBuffers returns a supply of n buffers for content of some size, made when they
// are first needed.
func newBuffers(n, size int) *buffers {
	b := &buffers{size: size, free: make(chan *buffer, n), unmade: make(chan struct{}, n)}
	for range n {
		b.unmade <- struct{}{}
	}
	return b
}

// make makes a buffer that there may still be one more of.
func (b *buffers) make() *buffer {
	return &buffer{make([]byte, b.size), make([]byte, b.size+chunk.Overhead), b}
}

// tryTake returns a buffer, or nil when there is none at the moment.
func (b *buffers) tryTake() *buffer {
	select {
	case taken := <-b.free:
		return taken
	default:
	}
	select {
	case taken := <-b.free:
		return taken
	case <-b.unmade:
		return b.make()
	default:
		return nil
	}
}

// take waits for a buffer. It is for those who hold none while they wait.
func (b *buffers) take(ctx context.Context) (*buffer, error) {
	if taken := b.tryTake(); taken != nil {
		return taken, nil
	}
	select {
	case taken := <-b.free:
		return taken, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// share is the buffers that a stream may use: those of the store, and one that
// nobody else does. Who streams may hold all of the store's while it waits for
// others to take or to send: they may be waiting for a buffer themselves, as when
// an object is stored again while it is read.
type share struct {
	common, own *buffers
}

// share returns the buffers for one more stream.
func (b *buffers) share() *share { return &share{b, newBuffers(1, b.size)} }

// take waits for a buffer.
func (s *share) take(ctx context.Context) (*buffer, error) {
	// Its own only when it has to: that is memory beyond the store's.
	if taken := s.common.tryTake(); taken != nil {
		return taken, nil
	}
	select {
	case taken := <-s.common.free:
		return taken, nil
	case <-s.common.unmade:
		return s.common.make(), nil
	case taken := <-s.own.free:
		return taken, nil
	case <-s.own.unmade:
		return s.own.make(), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
