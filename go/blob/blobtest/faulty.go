package blobtest

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"powercloud.unidatum.com/go/blob"
)

// Op says which of a location's methods a fault is in; several are combined
// with |.
type Op uint

// The operations of a location. RemoveTemporary counts as Delete, ListTemporary and
// ListSection as List, SectionMark as Stat.
const (
	Probe Op = 1 << iota
	Put
	Get
	Stat
	Delete
	List
	Flush

	// Writes are those that change something, Reads the others, All is both.
	Writes = Put | Delete | Flush
	Reads  = Probe | Get | Stat | List
	All    = Writes | Reads
)

// ErrFault is the error of a Faulty that was told to fail without saying how.
var ErrFault = errors.New("the location is down")

// ErrFull is the error of a Put beyond what a Faulty may take.
var ErrFull = errors.New("no space left on the location")

// Faulty is a location that fails, stalls, lies or fills up when told to, and
// otherwise does what the one inside does.
type Faulty struct {
	inner blob.Location

	mu      sync.Mutex
	failing map[Op]error
	stalled Op
	release chan struct{}
	alter   func(blob.Name, []byte) []byte
	full    bool
	space   int64
	calls   map[Op]int
	hook    func(Op, blob.Name)
}

var (
	_ blob.Temporaries = (*Faulty)(nil)
	_ blob.Creator     = (*Faulty)(nil)
	_ blob.Sections    = (*Faulty)(nil)
)

// NewFaulty returns a location without faults yet around inner.
func NewFaulty(inner blob.Location) *Faulty {
	return &Faulty{inner: inner, failing: map[Op]error{}, calls: map[Op]int{}}
}

// Fail makes these operations return err, or ErrFault when err is nil, until
// Heal.
func (f *Faulty) Fail(ops Op, err error) {
	if err == nil {
		err = ErrFault
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for op := Probe; op <= Flush; op <<= 1 {
		if ops&op != 0 {
			f.failing[op] = err
		}
	}
}

// Stall makes these operations wait, until Heal or until their context is done.
func (f *Faulty) Stall(ops Op) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stalled |= ops
	if f.release == nil {
		f.release = make(chan struct{})
	}
}

// Alter makes Get return what change returns for a blob. change owns the bytes.
func (f *Faulty) Alter(change func(name blob.Name, data []byte) []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.alter = change
}

// Corrupt makes Get return every blob with its last bit turned.
func (f *Faulty) Corrupt() {
	f.Alter(func(_ blob.Name, data []byte) []byte {
		if len(data) > 0 {
			data[len(data)-1] ^= 1
		}
		return data
	})
}

// Truncate makes Get return every blob without its last byte.
func (f *Faulty) Truncate() {
	f.Alter(func(_ blob.Name, data []byte) []byte { return data[:max(0, len(data)-1)] })
}

// Fill makes Put fail once more than space bytes have been put since.
func (f *Faulty) Fill(space int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.full, f.space = true, space
}

// Hook makes every operation call fn before it does anything. List, Probe and
// Flush give it no name.
func (f *Faulty) Hook(fn func(Op, blob.Name)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hook = fn
}

// Heal ends every fault.
func (f *Faulty) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.release != nil {
		close(f.release)
	}
	clear(f.failing)
	f.stalled, f.release, f.alter, f.full = 0, nil, nil, false
}

// Calls returns how often these operations have been called.
func (f *Faulty) Calls(ops Op) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for op, calls := range f.calls {
		if ops&op != 0 {
			n += calls
		}
	}
	return n
}

// enter counts a call, waits where it must and returns the error to fail with.
func (f *Faulty) enter(ctx context.Context, op Op, name blob.Name) error {
	f.mu.Lock()
	f.calls[op]++
	hook, release := f.hook, f.release
	if f.stalled&op == 0 {
		release = nil
	}
	f.mu.Unlock()
	if hook != nil {
		hook(op, name)
	}
	if release != nil {
		select {
		case <-release:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failing[op]
}

// String returns the inner location's name.
func (f *Faulty) String() string { return f.inner.String() }

// Probe probes the inner location.
func (f *Faulty) Probe(ctx context.Context) error {
	if err := f.enter(ctx, Probe, blob.Name{}); err != nil {
		return err
	}
	return f.inner.Probe(ctx)
}

// Put puts to the inner location.
func (f *Faulty) Put(ctx context.Context, name blob.Name, data []byte) error {
	if err := f.enterPut(ctx, name, data); err != nil {
		return err
	}
	return f.inner.Put(ctx, name, data)
}

// Create creates at the inner location. It counts as Put.
func (f *Faulty) Create(ctx context.Context, name blob.Name, data []byte) error {
	if err := f.enterPut(ctx, name, data); err != nil {
		return err
	}
	return blob.Create(ctx, f.inner, name, data)
}

// Amend amends at the inner location. It counts as Get and, when something is stored, as
// Put.
func (f *Faulty) Amend(ctx context.Context, name blob.Name, limit int64, change blob.Change) error {
	if found := f.enter(ctx, Get, name); found != nil {
		if !blob.Answered(found) {
			return found
		}
		next, err := change(nil, found)
		if err != nil || next == nil {
			return err
		}
		return f.Put(ctx, name, next)
	}
	return blob.Amend(ctx, f.inner, name, limit, func(data []byte, err error) ([]byte, error) {
		if err == nil {
			data = f.altered(name, data)
		}
		next, err := change(data, err)
		if err != nil || next == nil {
			return nil, err
		}
		return next, f.enterPut(ctx, name, next)
	})
}

// enterPut is enter for what takes space.
func (f *Faulty) enterPut(ctx context.Context, name blob.Name, data []byte) error {
	if err := f.enter(ctx, Put, name); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	full := f.full && int64(len(data)) > f.space
	f.space -= int64(len(data))
	if full {
		return ErrFull
	}
	return nil
}

// Get gets from the inner location.
func (f *Faulty) Get(ctx context.Context, name blob.Name, buf []byte, limit int64) ([]byte, error) {
	if err := f.enter(ctx, Get, name); err != nil {
		return nil, err
	}
	data, err := f.inner.Get(ctx, name, buf, limit)
	if err != nil {
		return nil, err
	}
	altered := f.altered(name, data)
	if int64(len(altered)) > limit {
		return nil, blob.ErrTooLarge
	}
	return append(buf[:0], altered...), nil
}

// altered returns what the location hands out instead of a blob.
func (f *Faulty) altered(name blob.Name, data []byte) []byte {
	f.mu.Lock()
	alter := f.alter
	f.mu.Unlock()
	if alter == nil {
		return data
	}
	return alter(name, bytes.Clone(data))
}

// Stat asks the inner location.
func (f *Faulty) Stat(ctx context.Context, name blob.Name) (blob.Info, error) {
	if err := f.enter(ctx, Stat, name); err != nil {
		return blob.Info{}, err
	}
	return f.inner.Stat(ctx, name)
}

// Delete deletes at the inner location.
func (f *Faulty) Delete(ctx context.Context, name blob.Name) error {
	if err := f.enter(ctx, Delete, name); err != nil {
		return err
	}
	return f.inner.Delete(ctx, name)
}

// List lists the inner location.
func (f *Faulty) List(ctx context.Context, kind blob.Kind, fn func(blob.Info) error) error {
	if err := f.enter(ctx, List, blob.Name{}); err != nil {
		return err
	}
	return f.inner.List(ctx, kind, fn)
}

// ListSection lists a section of the inner location.
func (f *Faulty) ListSection(ctx context.Context, kind blob.Kind, first byte, fn func(blob.Info) error) error {
	if err := f.enter(ctx, List, blob.Name{}); err != nil {
		return err
	}
	if sections, ok := f.inner.(blob.Sections); ok {
		return sections.ListSection(ctx, kind, first, fn)
	}
	return f.inner.List(ctx, kind, func(info blob.Info) error {
		if info.Name.ID[0] != first {
			return nil
		}
		return fn(info)
	})
}

// SectionMark asks the inner location, if it can tell.
func (f *Faulty) SectionMark(ctx context.Context, kind blob.Kind, first byte) (string, error) {
	if err := f.enter(ctx, Stat, blob.Name{}); err != nil {
		return "", err
	}
	if sections, ok := f.inner.(blob.Sections); ok {
		return sections.SectionMark(ctx, kind, first)
	}
	return "", nil
}

// Flush flushes the inner location.
func (f *Faulty) Flush(ctx context.Context) error {
	if err := f.enter(ctx, Flush, blob.Name{}); err != nil {
		return err
	}
	return f.inner.Flush(ctx)
}

// ListTemporary lists the inner location's leftovers, if it can have any.
func (f *Faulty) ListTemporary(ctx context.Context, fn func(blob.Temporary) error) error {
	if err := f.enter(ctx, List, blob.Name{}); err != nil {
		return err
	}
	if holder, ok := f.inner.(blob.Temporaries); ok {
		return holder.ListTemporary(ctx, fn)
	}
	return nil
}

// RemoveTemporary removes one of the inner location's leftovers.
func (f *Faulty) RemoveTemporary(ctx context.Context, name string) error {
	if err := f.enter(ctx, Delete, blob.Name{}); err != nil {
		return err
	}
	if holder, ok := f.inner.(blob.Temporaries); ok {
		return holder.RemoveTemporary(ctx, name)
	}
	return nil
}

// Far is a location that is far away: many calls of it are worth having under way at
// once; see blob.Concurrent.
type Far struct{ blob.Location }

// Concurrency returns 16.
func (Far) Concurrency() int { return 16 }
