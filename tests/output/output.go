// Package output keeps what the programs and the code under test write, so that
// a test can look at it while they go on.
package output

import (
	"bytes"
	"sync"
)

// Text keeps what is written to it. Several goroutines may use it at once. The
// zero value keeps everything.
type Text struct {
	// Most bounds how much is kept, in bytes: once it is reached, what follows
	// is left out. 0 is no bound.
	Most int

	mu   sync.Mutex
	text bytes.Buffer
}

// Write keeps b. It never fails.
func (t *Text) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.Most == 0 || t.text.Len() < t.Most {
		t.text.Write(b)
	}
	return len(b), nil
}

// String returns what was written so far.
func (t *Text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}
