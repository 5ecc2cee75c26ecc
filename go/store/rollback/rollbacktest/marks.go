// Package rollbacktest keeps version marks in memory for tests, and fails, stalls and
// lies when told to.
package rollbacktest

import (
	"context"
	"errors"
	"maps"
	"sync"

	"powercloud.unidatum.com/go/store/rollback"
)

// ErrDown is the error of Marks that were told to fail.
var ErrDown = errors.New("no node answers")

// Marks are version marks in memory. The zero value has none and works.
type Marks struct {
	mu    sync.Mutex
	marks map[rollback.Key]rollback.Mark
	fault Fault
	shift int64
}

// Fault is what is wrong with Marks.
type Fault int

const (
	// None is nothing.
	None Fault = iota
	// Down has every call fail.
	Down
	// Stalled has every call wait until its context ends.
	Stalled
	// Alone has reads answered by one node, and records refused.
	Alone
)

// Break sets what is wrong from now on.
func (m *Marks) Break(fault Fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fault = fault
}

// Lie makes every mark that is read later by so many nanoseconds.
func (m *Marks) Lie(later int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shift = later
}

// All returns a copy of the marks.
func (m *Marks) All() map[rollback.Key]rollback.Mark {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.marks)
}

// enter waits or fails as it must.
func (m *Marks) enter(ctx context.Context) (rollback.Trust, error) {
	m.mu.Lock()
	fault := m.fault
	m.mu.Unlock()
	switch fault {
	case Down:
		return 0, ErrDown
	case Stalled:
		<-ctx.Done()
		return 0, ctx.Err()
	case Alone:
		return rollback.Minority, nil
	}
	return rollback.Majority, ctx.Err()
}

// Get returns the marks of those manifests that have one.
func (m *Marks) Get(ctx context.Context, ids []rollback.Key) (map[rollback.Key]rollback.Mark, rollback.Trust, error) {
	trust, err := m.enter(ctx)
	if err != nil {
		return nil, 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	found := map[rollback.Key]rollback.Mark{}
	for _, id := range ids {
		if mark, ok := m.marks[id]; ok {
			mark.Time += m.shift
			found[id] = mark
		}
	}
	return found, trust, nil
}

// Each calls fn for every mark.
func (m *Marks) Each(ctx context.Context, fn func(rollback.Key, rollback.Mark) error) (rollback.Trust, error) {
	trust, err := m.enter(ctx)
	if err != nil {
		return 0, err
	}
	for id, mark := range m.All() {
		mark.Time += m.shift
		if err := fn(id, mark); err != nil {
			return 0, err
		}
	}
	return trust, nil
}

// Record records marks that are newer than what is recorded.
func (m *Marks) Record(ctx context.Context, marks map[rollback.Key]rollback.Mark) error {
	trust, err := m.enter(ctx)
	if err != nil {
		return err
	}
	if trust != rollback.Majority {
		return errors.New("no majority of the nodes answers")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.marks == nil {
		m.marks = map[rollback.Key]rollback.Mark{}
	}
	for id, mark := range marks {
		if mark.Time > m.marks[id].Time {
			m.marks[id] = mark
		}
	}
	return nil
}
