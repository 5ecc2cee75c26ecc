package ec

import (
	"context"
	"sync"

	"powercloud.unidatum.com/go/blob"
)

// names lets one goroutine at a time change a blob.
type names struct {
	mu   sync.Mutex
	held map[blob.Name]*holder
}

type holder struct {
	turn  chan struct{}
	users int
}

// lock waits for its turn to change a blob. The function that it returns ends it.
func (n *names) lock(ctx context.Context, name blob.Name) (unlock func(), err error) {
	n.mu.Lock()
	if n.held == nil {
		n.held = map[blob.Name]*holder{}
	}
	h := n.held[name]
	if h == nil {
		h = &holder{turn: make(chan struct{}, 1)}
		n.held[name] = h
	}
	h.users++
	n.mu.Unlock()
	leave := func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if h.users--; h.users == 0 {
			delete(n.held, name)
		}
	}
	select {
	case h.turn <- struct{}{}:
		return func() { <-h.turn; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
