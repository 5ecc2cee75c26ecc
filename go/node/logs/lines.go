package logs

import (
	"bytes"
	"strings"
	"sync"
	"time"
)

// maxQueue is how many bytes of own lines wait to be copied at most.
const maxQueue = 256 << 10

// Lines holds lines that this process gives the log itself, as slog's text handler writes
// them, until they are copied. It is for a pcd whose output isn't in the kernel's log.
// Whoever writes to it never waits and never fails. It is safe for use by several
// goroutines at once.
type Lines struct {
	mu      sync.Mutex
	records []Record
	size    int
	// dropped is how many lines found no room.
	dropped int
	// some has something in it when there is something to be taken.
	some chan struct{}
}

// NewLines returns one that has none.
func NewLines() *Lines { return &Lines{some: make(chan struct{}, 1)} }

// Write takes lines.
func (q *Lines) Write(b []byte) (int, error) {
	at := time.Now().UTC()
	q.mu.Lock()
	defer q.mu.Unlock()
	for line := range bytes.Lines(b) {
		// Once one was dropped the others are too, so that they are told of in their
		// place.
		if q.dropped > 0 || q.size+len(line) > maxQueue {
			q.dropped++
			continue
		}
		level, text := logged(strings.TrimRight(string(line), "\r\n"))
		q.records = append(q.records, Record{Time: at, Level: level, Source: SourceDaemon, Text: text})
		q.size += len(line)
	}
	select {
	case q.some <- struct{}{}:
	default:
	}
	return len(b), nil
}

// take returns what waits, and how many lines were dropped after it.
func (q *Lines) take() (records []Record, dropped int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	records, dropped = q.records, q.dropped
	q.records, q.size, q.dropped = nil, 0, 0
	return records, dropped
}
