// Package pool keeps memory that blobs were in for the next ones.
package pool

// kept bounds the number of pieces that a pool keeps, whatever their size.
const kept = 64

// Pool keeps large pieces of memory for later use. It may be used by several
// goroutines at once.
type Pool struct {
	least, limit int
	free         chan []byte
}

// New returns a Pool of pieces of at least so many bytes; smaller ones aren't worth
// keeping. limit bounds what it keeps altogether, in bytes.
func New(least, limit int) *Pool { return &Pool{least, limit, make(chan []byte, kept)} }

// Take returns size bytes of any content. Many of them begin at a page: the runtime
// gives large allocations pages of their own.
func (p *Pool) Take(size int) []byte {
	if size < p.least {
		return make([]byte, size)
	}
	select {
	case memory := <-p.free:
		if cap(memory) >= size {
			return memory[:size]
		}
	default:
	}
	return make([]byte, size)
}

// Give takes back what Take returned.
func (p *Pool) Give(memory []byte) {
	memory = memory[:cap(memory)]
	if len(memory) < p.least || len(p.free)*len(memory) > p.limit {
		return
	}
	select {
	case p.free <- memory:
	default:
	}
}
