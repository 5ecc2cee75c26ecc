package ec

import (
	"context"

	"powercloud.unidatum.com/go/blob"
)

// mends is how many shards are mended at once behind the reads that found out.
const mends = 4

// mendBehind has the parts that answered without a usable shard of the version
// sent theirs, beside the read that found out. What can't be mended now is left to
// the next read, or repair.
func (l *Location) mendBehind(ctx context.Context, t *tally, v *version) {
	if blob.IsReadOnly(ctx) {
		return
	}
	for part := range t.answers {
		if !t.lacks(part, v) || v.parts[part] >= 0 || l.isSpurned(part) {
			continue
		}
		made, err := l.rebuild(&v.descriptor, t.payloads(v), part)
		if err != nil {
			// Whoever wrote the version wrote sums that contradict each other.
			return
		}
		m := mending{record: v.record(part, made), stacked: v.stacked}
		l.background.Run(ctx, func(ctx context.Context) { l.mend(ctx, part, m) })
	}
}

// lacks reports whether a part answered without a shard of the version, or of a
// newer one that may be about to replace it.
func (t *tally) lacks(part int, v *version) bool {
	switch a := &t.answers[part]; a.state {
	case absent, unusable:
		return true
	case holding:
		return a.has(v.id) == nil && (t.isChunk() || !newer(a.records[0].sequence, a.records[0].id, v.sequence, v.id))
	}
	return false
}

// isChunk reports whether the blob has one version only.
func (t *tally) isChunk() bool { return t.name.Kind == blob.KindChunk }

// mending is a shard that a part is to have.
type mending struct {
	record
	// stacked says that the version may not outlast a power cut, so that what is
	// there of older ones must stay.
	stacked bool
	// beneath has newer versions that the shard goes behind. Where the part has
	// another one that is newer, somebody is replacing the blob.
	beneath *tally
}

// record returns what is known of a shard of the version.
func (v *version) record(index int, raw []byte) record {
	return record{descriptor: v.descriptor, id: v.id, index: index, raw: raw}
}

// change puts the shard where it belongs, unless the part has it by now. It returns
// errOvertaken where somebody is replacing the blob.
func (m *mending) change(a *answer) (records []record, ok bool, err error) {
	var before, behind []record
	for i := range a.records {
		r := &a.records[i]
		switch {
		case r.id == m.id && r.index == m.index:
			if !a.damaged {
				return nil, false, nil
			}
		case r.id == m.id:
		case !newer(r.sequence, r.id, m.sequence, m.id):
			if m.stacked {
				behind = append(behind, *r)
			}
		case m.beneath == nil || m.beneath.version(r.id) == nil:
			return nil, false, errOvertaken
		default:
			before = append(before, *r)
		}
	}
	records = append(before[:min(len(before), maxRecords-1)], m.record)
	return append(records, behind[:min(len(behind), maxRecords-len(records))]...), true, nil
}

// mend sends a part its shard, unless it has it by now, or a newer one.
func (l *Location) mend(ctx context.Context, part int, m mending) {
	stacks := false
	var err error
	if m.name.Kind == blob.KindChunk {
		err = l.parts[part].Put(ctx, m.name, m.raw)
	} else {
		unlock, lockErr := l.names.lock(ctx, m.name)
		if lockErr != nil {
			return
		}
		defer unlock()
		stacks, err = l.mendAlone(ctx, part, m)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.spurned[part] = l.spurned[part] || ctx.Err() == nil && !isOvertaken(err)
		return
	}
	l.mended[part] = true
	if stacks {
		l.noteReplaced(m.name, replacement{m.id, true})
	}
}

// mendAlone is mend while nobody else in this process changes the blob. It reports
// whether older versions stay behind the one that is mended.
func (l *Location) mendAlone(ctx context.Context, part int, m mending) (stacks bool, err error) {
	err = l.amend(ctx, part, m.name, nil, int64(len(m.raw)), func(a *answer) ([]record, bool, error) {
		records, ok, err := m.change(a)
		stacks = ok && len(records) > 1
		return records, ok, err
	})
	return stacks, err
}

func (l *Location) isSpurned(part int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.spurned[part]
}

// Close waits for what reads have found to be mended, and makes that outlast a
// power cut. Once ctx is done, it ends what is under way instead.
func (l *Location) Close(ctx context.Context) error {
	l.background.Wait(ctx)
	l.mu.Lock()
	mended := l.mended
	l.mended = make([]bool, l.total)
	l.mu.Unlock()
	errs := l.each(func(i int, part blob.Location) error {
		if !mended[i] || ctx.Err() != nil {
			return nil
		}
		return part.Flush(ctx)
	})
	if countNil(errs) < l.total {
		return l.failures("flushing what was mended", errs)
	}
	return ctx.Err()
}
