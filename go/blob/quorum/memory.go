package quorum

// memory is large buffers that blobs are read into. They aren't the readers' own, as a
// location that is not waited for any longer may still write into one.
type memory struct{ free chan []byte }

const (
	// pooled is how many buffers are kept for the next reads.
	pooled = 16
	// pooledSize is the size of those that are worth keeping, in bytes.
	pooledSize = 256 << 10
)

func newMemory() memory { return memory{make(chan []byte, pooled)} }

// take returns a buffer for a blob of at most limit bytes.
func (m memory) take(limit int64) []byte {
	if limit < pooledSize {
		return make([]byte, limit)
	}
	select {
	case buffer := <-m.free:
		if int64(cap(buffer)) >= limit {
			return buffer
		}
	default:
	}
	return make([]byte, limit)
}

// give takes a buffer back.
func (m memory) give(buffer []byte) {
	if len(buffer) < pooledSize {
		return
	}
	select {
	case m.free <- buffer:
	default:
	}
}
