package quorum

// memory is buffers that blobs are read into. They aren't the readers' own, as a
// location that is not waited for any longer may still write into one.
type memory struct{ free chan []byte }

// pooled is how many buffers are kept for the next reads.
const pooled = 16

func newMemory() memory { return memory{make(chan []byte, pooled)} }

// take returns a buffer for a blob of at most limit bytes.
func (m memory) take(limit int64) []byte {
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
	select {
	case m.free <- buffer:
	default:
	}
}
