package logs

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"time"
)

// maxQueue is how many bytes of own lines wait to be copied at most.
const maxQueue = 256 << 10

// queue holds lines that this process gives the log itself, until they are copied.
// Whoever writes never waits.
type queue struct {
	now func() time.Time

	mu      sync.Mutex
	records []Record
	size    int
	// dropped is how many lines found no room.
	dropped int
	// some has something in it when there is something to be taken.
	some chan struct{}
}

func newQueue(now func() time.Time) queue { return queue{now: now, some: make(chan struct{}, 1)} }

// Writer returns what takes pcd's own lines, as slog's text handler writes them. It is
// for a pcd whose output isn't in the kernel's log, and never waits or fails.
func (l *Log) Writer() io.Writer { return &l.own }

// Write takes lines.
func (q *queue) Write(b []byte) (int, error) {
	at := q.now().UTC()
	q.mu.Lock()
	defer q.mu.Unlock()
	for line := range bytes.Lines(b) {
		if q.size+len(line) > maxQueue {
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
func (q *queue) take() (records []Record, dropped int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	records, dropped = q.records, q.dropped
	q.records, q.size, q.dropped = nil, 0, 0
	return records, dropped
}
