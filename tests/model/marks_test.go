package model

import (
	"context"
	"sync"

	"powercloud.unidatum.com/go/store/rollback"
)

// marks is what the nodes record of objects' versions. They always answer.
type marks struct {
	mu       sync.Mutex
	recorded map[rollback.Key]rollback.Mark
}

var _ rollback.Marks = (*marks)(nil)

func (k *marks) Get(_ context.Context, ids []rollback.Key) (map[rollback.Key]rollback.Mark, rollback.Trust, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	found := map[rollback.Key]rollback.Mark{}
	for _, id := range ids {
		if mark, ok := k.recorded[id]; ok {
			found[id] = mark
		}
	}
	return found, rollback.Majority, nil
}

func (k *marks) Each(_ context.Context, fn func(rollback.Key, rollback.Mark) error) (rollback.Trust, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, mark := range k.recorded {
		if err := fn(id, mark); err != nil {
			return rollback.Majority, err
		}
	}
	return rollback.Majority, nil
}

func (k *marks) Record(_ context.Context, newer map[rollback.Key]rollback.Mark) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, mark := range newer {
		if known, ok := k.recorded[id]; !ok || mark.Time > known.Time {
			k.recorded[id] = mark
		}
	}
	return nil
}

// rolledBack reports whether the nodes know of a newer version of an object than one
// that is shown, or nil for none.
func (m *model) rolledBack(o *object, shown *version) bool {
	m.world.marks.mu.Lock()
	defer m.world.marks.mu.Unlock()
	mark, known := m.world.marks.recorded[o.blob.ID]
	if !known || shown == nil {
		return known && !mark.Deleted
	}
	return shown.number.Time < mark.Time
}

// checkMark checks that a version that is found, or nil for none, is no older than
// what was acknowledged, even if all locations have lost that.
func (m *model) checkMark(c *command, o *object, found *version) {
	if !m.world.script.guarded || found == nil && c.do == ls && c.unread() != 0 {
		return
	}
	for _, v := range o.versions {
		acknowledged := false
		for _, p := range v.promises {
			acknowledged = acknowledged || p.at < c.start
		}
		switch {
		case !acknowledged:
		case found != nil && found.number.Time < v.number.Time,
			found == nil && !v.deleted && o.find(func(t *version) bool { return t.deleted && t.newer(v) }) == nil:
			m.fail("nobody notices that %s is found instead of %s", found, v)
		}
	}
}
