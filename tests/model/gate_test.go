package model

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
)

// gate holds every call to a location until the script lets it pass. So what
// happens depends on the script alone, not on how goroutines are scheduled.
type gate struct {
	mu      sync.Mutex
	waiting []*call
}

// call is a call to a location that waits.
type call struct {
	ctx     context.Context
	command *command
	handle  *handle
	op      blobtest.Op
	name    blob.Name
	// do does it, with this result unless that is nil.
	do   func(refused error) error
	err  error
	done chan struct{}
}

// pass waits until the call has been done.
func (g *gate) pass(c *call) error {
	c.done = make(chan struct{})
	g.mu.Lock()
	g.waiting = append(g.waiting, c)
	g.mu.Unlock()
	<-c.done
	return c.err
}

// of returns the calls of a client that wait, in an order of their own, apart from
// those at a location that has stalled.
func (g *gate) of(c *client) (ready []*call, stalled int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, waiting := range g.waiting {
		switch {
		case waiting.handle.client != c:
		case waiting.handle.place.fault == stalledFault && waiting.ctx.Err() == nil && !waiting.command.dead:
			stalled++
		default:
			ready = append(ready, waiting)
		}
	}
	slices.SortStableFunc(ready, func(a, b *call) int {
		return cmp.Or(cmp.Compare(given(b), given(a)), cmp.Compare(a.handle.place.index, b.handle.place.index), cmp.Compare(a.op, b.op),
			slices.Compare(a.name.ID[:], b.name.ID[:]))
	})
	return ready, stalled
}

// given is 1 for a call that its caller has given up, so that it doesn't count on the
// answer any more, or 0.
func given(c *call) int {
	if c.ctx.Err() != nil {
		return 1
	}
	return 0
}

// release does calls.
func (g *gate) release(calls []*call) {
	g.mu.Lock()
	g.waiting = slices.DeleteFunc(g.waiting, func(c *call) bool { return slices.Contains(calls, c) })
	g.mu.Unlock()
	// Which of several equal ones comes first depends on goroutines: all fare alike.
	counted := map[callKey]places{}
	for _, c := range calls {
		key, p := callKey{c.op, c.name}, c.handle.place
		if !counted[key].has(p.index) {
			counted[key] = counted[key].with(p.index)
			p.calls[key]++
		}
	}
	for _, c := range calls {
		c.handle.perform(c)
	}
	// Only now, so that what one caller does next can't matter to another call.
	for _, c := range calls {
		close(c.done)
	}
}

// handle is a location as one process sees it.
type handle struct {
	gate   *gate
	client *client
	place  *place
	// dirty is set while something that it did is not flushed; broken once that
	// was lost.
	dirty, broken bool
}

var (
	_ blob.Amender = (*handle)(nil)
	_ blob.Creator = (*handle)(nil)
)

func (h *handle) String() string { return h.place.memory.String() }

// perform does a call as far as the location's faults let it.
func (h *handle) perform(c *call) {
	command, p := c.command, h.place
	key := callKey{c.op, c.name}
	before, after := error(nil), error(nil)
	switch {
	case command.dead:
		before = errDead
	case c.ctx.Err() != nil:
		before = c.ctx.Err()
	case p.fault == down, p.fault == stalledFault:
		before = errDown
	case p.fault == flaky:
		switch mix(p.salt, uint64(c.op), uint64(c.name.Kind), uint64(c.name.ID[0]), p.calls[key]) % 6 {
		case 0:
			before = errDown
		case 1:
			after = errDown
		}
	case p.fault == full && c.op == blobtest.Put:
		before = errSpace
	case p.fault == deaf:
		after = errDown
	case p.fault.lie():
		command.lied = command.lied.with(p.index)
	}
	if before != nil {
		c.err = c.do(before)
	} else {
		c.err = cmp.Or(after, c.do(nil))
	}
	// What a reader gives up at a sound place, since it has enough, depends on goroutines.
	spared := c.ctx.Err() != nil && !command.dead && (p.fault == sound || p.fault.lie())
	if c.err != nil && !answered(c.err) && !spared {
		command.failed = command.failed.with(p.index)
		if c.op == blobtest.Get && c.name.Kind == blob.KindManifest && !p.member.coded() {
			command.blind.Or(uint32(only(p.index)))
		}
	}
}

func (h *handle) call(ctx context.Context, op blobtest.Op, name blob.Name, do func() error) error {
	return h.gate.pass(&call{ctx: ctx, command: h.client.command, handle: h, op: op, name: name, do: func(refused error) error {
		if refused != nil {
			return refused
		}
		return do()
	}})
}

func (h *handle) Probe(ctx context.Context) error {
	return h.call(ctx, blobtest.Probe, blob.Name{}, func() error { return nil })
}

func (h *handle) Put(ctx context.Context, name blob.Name, data []byte) error {
	return h.put(ctx, name, data, func() error { return nil })
}

// put stores a blob if it may, which is asked in the same step.
func (h *handle) put(ctx context.Context, name blob.Name, data []byte, may func() error) error {
	return h.call(ctx, blobtest.Put, name, func() error {
		if err := may(); err != nil {
			return err
		}
		h.place.model.sent(h.client.command, h.place, name, data)
		if h.place.fault == dropping {
			return nil
		}
		h.touch(name, true)
		return h.place.put(h.client.command, name, data)
	})
}

// Create stores a blob where there is none; see blob.Creator.
func (h *handle) Create(ctx context.Context, name blob.Name, data []byte) error {
	return h.put(ctx, name, data, func() error {
		if h.place.has(name) {
			return blob.ErrExists
		}
		return nil
	})
}

var errChanged = errors.New("it was replaced meanwhile")

// Amend changes a blob; see blob.Amender. It is two calls, between which anything may
// happen.
func (h *handle) Amend(ctx context.Context, name blob.Name, limit int64, change blob.Change) error {
	for range blob.AmendTries {
		mark := ""
		data, found := h.get(ctx, name, limit, func() {
			if mark = h.place.mark(name); mark != "" {
				h.touch(name, false)
			}
		})
		if !blob.Answered(found) {
			return found
		}
		next, err := change(data, found)
		if err != nil || next == nil {
			return err
		}
		err = h.put(ctx, name, next, func() error {
			if h.place.mark(name) != mark {
				return errChanged
			}
			return nil
		})
		if !errors.Is(err, errChanged) {
			return err
		}
	}
	return blob.ErrContended
}

func (h *handle) Get(ctx context.Context, name blob.Name, buf []byte, limit int64) ([]byte, error) {
	data, err := h.get(ctx, name, limit, func() {})
	if err != nil {
		return nil, err
	}
	return append(buf[:0], data...), nil
}

// get reads a blob. note is called in the same step.
func (h *handle) get(ctx context.Context, name blob.Name, limit int64, note func()) (data []byte, err error) {
	err = h.call(ctx, blobtest.Get, name, func() error {
		note()
		var err error
		if data, err = h.place.get(name); err == nil && int64(len(data)) > limit {
			err = blob.ErrTooLarge
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return data, nil
}

func (h *handle) Stat(ctx context.Context, name blob.Name) (info blob.Info, err error) {
	err = h.call(ctx, blobtest.Stat, name, func() error {
		var err error
		if info, err = h.place.stat(name); err == nil {
			h.touch(name, false)
		}
		return err
	})
	return info, err
}

func (h *handle) Delete(ctx context.Context, name blob.Name) error {
	return h.call(ctx, blobtest.Delete, name, func() error {
		if h.place.fault == dropping {
			return nil
		}
		h.touch(name, true)
		return h.place.delete(h.client.command, name)
	})
}

func (h *handle) List(ctx context.Context, kind blob.Kind, fn func(blob.Info) error) error {
	var infos []blob.Info
	err := h.call(ctx, blobtest.List, blob.Name{Kind: kind}, func() error {
		infos = h.place.list(kind)
		return nil
	})
	for _, info := range infos {
		if err := fn(info); err != nil {
			return err
		}
	}
	return err
}

func (h *handle) Flush(ctx context.Context) error {
	return h.call(ctx, blobtest.Flush, blob.Name{}, func() error {
		switch {
		case h.broken:
			return errPower
		case h.place.fault == dropping:
			return nil
		}
		h.dirty = false
		for name, u := range h.place.unsynced {
			if u.by[h] {
				delete(h.place.unsynced, name)
			}
		}
		return nil
	})
}

// touch notes that the next flush is to make a blob last: one that is about to be
// written, or was found.
func (h *handle) touch(name blob.Name, written bool) {
	p := h.place
	h.dirty = true
	u := p.unsynced[name]
	if u == nil {
		if !written {
			return
		}
		u = &unsynced{before: p.content(name), by: map[*handle]bool{}}
		p.unsynced[name] = u
	}
	u.by[h] = true
}
