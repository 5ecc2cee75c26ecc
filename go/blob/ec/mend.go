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
		name, id, sequence, stacked := t.name, v.id, v.sequence, v.stacked
		l.background.Run(ctx, func(ctx context.Context) {
			l.mend(ctx, part, name, made, mending{id, sequence, stacked})
		})
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

// mending describes the version that a shard belongs to which is to be mended.
type mending struct {
	id       versionID
	sequence uint64
	// stacked says that the version may not outlast a power cut, so that what is
	// there of older ones must stay.
	stacked bool
}

// mend sends a part its shard, unless it has it by now, or a newer one.
func (l *Location) mend(ctx context.Context, part int, name blob.Name, made []byte, m mending) {
	raws := [][]byte{made}
	if name.Kind != blob.KindChunk {
		unlock, err := l.names.lock(ctx, name)
		if err != nil {
			return
		}
		defer unlock()
		a, _ := l.ask(ctx, part, name, maxSize)
		if has := a.has(m.id); a.state == unreachable || has != nil && has.intact() {
			return
		}
		for i := range a.records {
			r := &a.records[i]
			if r.id == m.id || !r.intact() {
				continue
			}
			if newer(r.sequence, r.id, m.sequence, m.id) {
				return
			}
			if m.stacked && len(raws) < maxRecords {
				raws = append(raws, r.raw)
			}
		}
	}
	err := l.parts[part].Put(ctx, name, joinRecords(raws))
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.spurned[part] = l.spurned[part] || ctx.Err() == nil
		return
	}
	l.mended[part] = true
	if len(raws) > 1 {
		l.noteReplaced(name, replacement{m.id, true})
	}
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
