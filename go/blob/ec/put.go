package ec

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/ledger"
)

// aheadOfTime is how far a sequence may lie ahead of the clock of a writer that
// nevertheless goes beyond it, though no other part vouches for it. A part that
// makes up a version must not use up the sequences.
const aheadOfTime = 24 * time.Hour

const stored = "shards stored"

// Put stores a blob; see blob.Location. It fails with a *PartsError unless K+1 parts
// took their shards. What the others hold is then mended by reads, or repair.
func (l *Location) Put(ctx context.Context, name blob.Name, data []byte) error {
	if err := blob.CheckCall(ctx, name); err != nil {
		return err
	}
	if name.Kind == blob.KindChunk {
		return l.putChunk(ctx, name, data, nil)
	}
	return l.replace(ctx, name, data)
}

// PutMissing stores the shards of a blob that parts lack; see blob.Completer.
func (l *Location) PutMissing(ctx context.Context, name blob.Name, data []byte) error {
	if err := blob.CheckCall(ctx, name); err != nil {
		return err
	}
	if name.Kind != blob.KindChunk {
		return l.supersedeUnless(ctx, name, 0, data, nil)
	}
	size := int64(len(data))
	return l.putChunk(ctx, name, data, func(i int, part blob.Location) bool {
		info, err := part.Stat(ctx, name)
		// Whatever kept Stat from an answer, Put meets too and reports.
		return err == nil && info.Size == l.recordSize(size, i)
	})
}

// putChunk writes the shards of a chunk to all parts but those that have theirs
// already. All shards of a chunk are the same whenever it is written, so a part can
// be sent one whatever the others have.
func (l *Location) putChunk(ctx context.Context, name blob.Name, data []byte, has func(int, blob.Location) bool) error {
	var made *encoded
	encode := sync.OnceValue(func() (err error) {
		made, err = l.encode(name, 0, data)
		return err
	})
	if has == nil {
		if err := encode(); err != nil {
			return err
		}
	}
	errs := l.each(func(i int, part blob.Location) error {
		return l.writing.Try(ctx, i, func() error {
			if has != nil && has(i, part) {
				return nil
			}
			if err := encode(); err != nil {
				return err
			}
			raw, err := made.record(i)
			if err != nil {
				return err
			}
			return part.Put(ctx, name, raw)
		})
	})
	if made != nil {
		made.release()
	}
	return l.acknowledge(ctx, errs)
}

// acknowledge enters a write of which errs says which parts took it.
func (l *Location) acknowledge(ctx context.Context, errs []error) error {
	if err := l.enough(ctx, errs, l.quorum(), stored); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, err := range errs {
		if err != nil && l.missed[i] == nil {
			l.missed[i] = err
		}
	}
	l.writes.Add(ledger.Succeeded(errs))
	return nil
}

// replace stores a version of a blob that is newer than any other, in front of the
// one that is read now, which stays until Flush.
func (l *Location) replace(ctx context.Context, name blob.Name, data []byte) error {
	t, release, err := l.inspectAlone(ctx, name)
	if err != nil {
		return err
	}
	defer release()
	return l.replaceSeen(ctx, t, data, false)
}

// errOvertaken says that somebody stored another version after the parts were looked at.
var errOvertaken = errors.New("another version was stored meanwhile")

func isOvertaken(err error) bool { return errors.Is(err, errOvertaken) }

// replaceSeen is replace by somebody who knows what the parts hold. Where they have come
// to hold something else, it is kept as well or, if alone is set, left alone: then the
// error is errOvertaken, whatever other parts took.
func (l *Location) replaceSeen(ctx context.Context, t *tally, data []byte, alone bool) error {
	name, base, sequence := t.name, t.best(), l.nextSequence(t)
	errs := l.settleBase(ctx, t, base)
	made, err := l.encode(name, sequence, data)
	if err != nil {
		return err
	}
	defer made.release()
	doubtful := base != nil && !base.durable(ledger.Succeeded(errs), l.quorum())
	kept := make([]bool, l.total)
	putErrs := l.each(func(i int, _ blob.Location) error {
		if errs[i] != nil {
			return errs[i]
		}
		return l.amend(ctx, i, name, &t.answers[i], made.weight(i), func(a *answer) ([]record, bool, error) {
			if alone && t.overtaken(i, a, sequence) {
				return nil, false, errOvertaken
			}
			mine, err := made.asRecord(i)
			if err != nil {
				return nil, false, err
			}
			beside := t.beside(a, base, doubtful, sequence)
			kept[i] = len(beside) > 0
			return append(beside, mine), true, nil
		})
	})
	if slices.ContainsFunc(putErrs, isOvertaken) {
		return errOvertaken
	}
	if err := l.acknowledge(ctx, putErrs); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.replaced, name)
	if slices.Contains(kept, true) {
		l.noteReplaced(name, replacement{id: made.id()})
	}
	return nil
}

// settleBase makes sure that the version which a new one is about to be put in
// front of outlasts a power cut, if there is a doubt: what is behind it is dropped.
// It returns the errors of the parts that can't be written to.
func (l *Location) settleBase(ctx context.Context, t *tally, base *version) []error {
	errs := make([]error, l.total)
	for i := range t.answers {
		if t.answers[i].state == unreachable {
			errs[i] = t.answers[i].err
		}
	}
	if base == nil || !base.stacked {
		return errs
	}
	flushed := l.rely(ctx, t, base, errs)
	durable := 0
	for _, part := range base.parts {
		if part >= 0 && flushed[part] == nil {
			durable++
		}
	}
	if durable < l.data {
		// Better no new version than the loss of the one there is.
		for i := range flushed {
			if flushed[i] == nil {
				flushed[i] = errors.New("too few other parts can flush the earlier version")
			}
		}
	}
	return flushed
}

// nextSequence returns the sequence of a version that is to replace all that were
// seen: the present time, or one more than the highest.
func (l *Location) nextSequence(t *tally) uint64 {
	now := uint64(max(l.now().UnixNano(), 1))
	sequence := now
	for _, v := range t.versions {
		vouched := v.count >= l.agreement()
		if vouched || v.sequence <= now+uint64(aheadOfTime) {
			sequence = max(sequence, v.sequence+1)
		}
	}
	return min(sequence, maxSequence)
}

// fallback returns an older version of those that a part has which must stay as well when
// so few parts have the one that is read now that it can't have been acknowledged: losing
// a part more could bring the older one back, or parts that can't be read now. It is the
// one that most parts have and, of several, the oldest: what was acknowledged has nothing
// behind it.
func (t *tally) fallback(a *answer, base *version) *version {
	var found *version
	for i := range a.records {
		v := t.version(a.records[i].id)
		if v == nil || v.count < t.data && !t.possible(v) || !newer(base.sequence, base.id, v.sequence, v.id) {
			continue
		}
		if found == nil || v.count > found.count || v.count == found.count && newer(found.sequence, found.id, v.sequence, v.id) {
			found = v
		}
	}
	return found
}

// overtaken reports whether a part that answers this has come to hold a version since the
// tally, or has lost all.
func (t *tally) overtaken(part int, a *answer, sequence uint64) bool {
	if a.state == absent && t.answers[part].state == holding {
		return true
	}
	return slices.ContainsFunc(a.records, func(r record) bool {
		return t.answers[part].has(r.id) == nil && !t.madeUp(&r, sequence)
	})
}

// madeUp reports whether a version can't have been written by anybody: it ought to be
// older than one with this sequence, or is from a day after tomorrow.
func (t *tally) madeUp(r *record, sequence uint64) bool {
	return r.sequence >= sequence && (t.version(r.id) != nil || r.sequence-sequence > uint64(aheadOfTime))
}

// beside returns the records that stay with a new version at a part which now answers
// this: what was put there since the tally; what it falls back on if there is a doubt
// whether the version that was read then was acknowledged; that version; and the newest of
// those that may have been about to replace it, in this order of importance.
func (t *tally) beside(a *answer, base *version, doubtful bool, sequence uint64) []record {
	var fallback *version
	if doubtful {
		fallback = t.fallback(a, base)
	}
	rank := func(r *record) int {
		switch {
		case t.version(r.id) == nil:
			return 0
		case fallback != nil && r.id == fallback.id:
			return 1
		case base != nil && r.id == base.id:
			return 2
		case fallback == nil && (base == nil || newer(r.sequence, r.id, base.sequence, base.id)):
			return 3
		}
		return 4
	}
	var kept []record
	for i := range a.records {
		r := &a.records[i]
		if rank(r) < 4 && !t.madeUp(r, sequence) {
			kept = append(kept, *r)
		}
	}
	slices.SortStableFunc(kept, func(a, b record) int { return rank(&a) - rank(&b) })
	return kept[:min(len(kept), maxRecords-1)]
}

// mostReplaced bounds the blobs whose older versions a flush drops. It is more than
// any writer replaces before it flushes; what is beyond it, repair drops.
const mostReplaced = 8192

// noteReplaced enters a blob whose older version is to be dropped once the new one
// has been flushed. l.mu is held.
func (l *Location) noteReplaced(name blob.Name, by replacement) {
	if _, known := l.replaced[name]; known || len(l.replaced) < mostReplaced {
		l.replaced[name] = by
	}
}

// manyReplaced reports whether it is time for a flush.
func (l *Location) manyReplaced() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.replaced) >= mostReplaced/2
}

// Create stores a blob where there is none; see blob.Creator. The parts are asked
// one after the other, so that of several who try at once, all meet at the first.
func (l *Location) Create(ctx context.Context, name blob.Name, data []byte) error {
	if err := blob.CheckCall(ctx, name); err != nil {
		return err
	}
	unlock, err := l.names.lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	sequence := uint64(0)
	if name.Kind != blob.KindChunk {
		sequence = l.nextSequence(newTally(l.layout, name, l.parts))
	}
	made, err := l.encode(name, sequence, data)
	if err != nil {
		return err
	}
	defer made.release()
	errs := make([]error, l.total)
	for i, part := range l.parts {
		if errs[i] = l.createAt(ctx, part, made, i); errors.Is(errs[i], blob.ErrExists) {
			return l.uncreate(ctx, made, errs[:i], blob.ErrExists)
		}
	}
	// A majority, so that no two succeed when they don't meet at some part.
	err = l.enough(ctx, errs, max(l.quorum(), l.total/2+1), stored)
	if err != nil {
		return l.uncreate(ctx, made, errs, err)
	}
	return l.acknowledge(ctx, errs)
}

func (l *Location) createAt(ctx context.Context, part blob.Location, made *encoded, index int) error {
	raw, err := made.record(index)
	if err != nil {
		return err
	}
	return blob.Create(ctx, part, made.name, raw)
}

// uncreate takes back what was created at the parts without an error, and returns
// why.
func (l *Location) uncreate(ctx context.Context, made *encoded, errs []error, why error) error {
	ctx = context.WithoutCancel(ctx)
	for i, err := range errs {
		if err != nil {
			continue
		}
		a, _ := l.ask(ctx, i, made.name, made.size)
		if a.has(made.id()) == nil {
			continue
		}
		if err := l.parts[i].Delete(ctx, made.name); err != nil {
			return fmt.Errorf("%w; and its shard could not be removed from %s again: %w", why, l.parts[i], err)
		}
	}
	return why
}
