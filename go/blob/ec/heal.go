package ec

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"powercloud.unidatum.com/go/blob"
)

// healers is how many blobs are looked at and made whole at once.
const healers = 8

// Inspect looks at the shards of every blob; see blob.Healer.
func (l *Location) Inspect(ctx context.Context, options blob.HealOptions) (blob.Health, error) {
	return l.examine(ctx, options, false)
}

// Heal makes the shards again that are missing, old or altered; see blob.Healer.
func (l *Location) Heal(ctx context.Context, options blob.HealOptions) (blob.Health, error) {
	return l.examine(ctx, options, true)
}

// examination is an Inspect or Heal at work.
type examination struct {
	*Location
	options blob.HealOptions
	heal    bool

	mu     sync.Mutex
	health blob.Health
}

func (l *Location) examine(ctx context.Context, options blob.HealOptions, heal bool) (blob.Health, error) {
	x := &examination{Location: l, options: options, heal: heal}
	for _, part := range l.parts {
		x.health.Parts = append(x.health.Parts, blob.PartHealth{Part: part.String()})
	}
	if err := x.blob(ctx, l.newEntry(blob.Header())); err != nil {
		return x.health, err
	}
	for _, kind := range []blob.Kind{blob.KindManifest, blob.KindRecord, blob.KindChunk} {
		group, groupCtx := errgroup.WithContext(ctx)
		group.SetLimit(healers)
		errs, err := l.walk(groupCtx, kind, func(e *entry) error {
			group.Go(func() error { return x.blob(groupCtx, e) })
			if heal && l.manyReplaced() {
				return x.flush(groupCtx)
			}
			return groupCtx.Err()
		})
		if groupErr := group.Wait(); groupErr != nil {
			err = groupErr
		}
		if ctxErr := ctx.Err(); ctxErr != nil {
			return x.health, ctxErr
		}
		if err != nil {
			return x.health, err
		}
		for part, err := range errs {
			x.failed(part, err)
		}
	}
	if !heal {
		return x.health, nil
	}
	return x.health, x.flush(ctx)
}

// flush makes what was healed outlast a power cut.
func (x *examination) flush(ctx context.Context) error {
	err := x.Flush(ctx)
	var failure *PartsError
	if !errors.As(err, &failure) {
		return err
	}
	for _, f := range failure.Failures {
		for part := range x.parts {
			if x.parts[part] == f.Location {
				x.failed(part, f.Err)
			}
		}
	}
	return ctx.Err()
}

// failed enters why a part can't be looked at or written to.
func (x *examination) failed(part int, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if p := &x.health.Parts[part]; err != nil && p.Err == nil {
		p.Err = err
	}
}

// refused reports whether a part has failed.
func (x *examination) refused(part int) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.health.Parts[part].Err != nil
}

// defect is what is wrong with a part's shard of a blob, in ascending order of what
// counts for the blob.
type defect uint8

const (
	none defect = iota
	corrupt
	stale
	missing
)

// blob looks at one blob, and heals it.
func (x *examination) blob(ctx context.Context, e *entry) error {
	if e.name.Kind == blob.KindChunk && !x.options.Verify && x.complete(e) {
		return nil
	}
	var read int64
	if e.name.Kind == blob.KindChunk {
		for _, length := range e.lengths {
			read += max(length, 0)
		}
		x.tell(x.options.Expect, read)
		defer x.tell(x.options.Done, read)
	}
	if x.heal && e.name.Kind != blob.KindChunk {
		unlock, err := x.names.lock(ctx, e.name)
		if err != nil {
			return err
		}
		defer unlock()
	}
	t, release, err := x.inspect(ctx, e.name, e.inspectedSize(x.data))
	if err != nil {
		return err
	}
	defer release()
	best := t.best()
	for part := range t.answers {
		if a := &t.answers[part]; a.state == unreachable {
			x.failed(part, a.err)
		}
	}
	if best == nil || t.doubt(best) != nil {
		return ctx.Err() // It can't be put together, or shouldn't.
	}
	found := t.defects(best)
	healed := x.heal && t.agreed(best) && x.make(ctx, t, best, found)
	x.count(found, healed)
	return ctx.Err()
}

func (x *examination) tell(whom func(int64), n int64) {
	if whom != nil && n > 0 {
		whom(n)
	}
}

// complete reports whether all parts that can be listed have a shard of the length
// that the others' have.
func (x *examination) complete(e *entry) bool {
	_, agree, ok := x.sizeFromLengths(e.lengths)
	return ok && agree+e.failed == x.total
}

// defects returns what is wrong with each part's shard of a version.
func (t *tally) defects(v *version) []defect {
	found := make([]defect, t.total)
	for part := range t.answers {
		switch a := &t.answers[part]; {
		case a.state == absent:
			found[part] = missing
		case a.state == unusable:
			found[part] = corrupt
		case a.state == holding && a.damaged:
			found[part] = corrupt
		case a.state != holding || t.holds(part, v):
		case a.has(v.id) != nil:
			// The same shard as another part's: its own is missing.
			found[part] = missing
		case t.isChunk():
			found[part] = corrupt
		case newer(a.records[0].sequence, a.records[0].id, v.sequence, v.id):
			found[part] = missing
		default:
			found[part] = stale
		}
	}
	return found
}

// holds reports whether a part holds a shard of a version that no other part does.
func (t *tally) holds(part int, v *version) bool {
	for _, holder := range v.parts {
		if holder == part {
			return true
		}
	}
	return false
}

// make makes the shards again that parts lack, and reports whether it made all.
func (x *examination) make(ctx context.Context, t *tally, v *version, found []defect) bool {
	if v.stacked {
		x.Location.mu.Lock()
		x.noteReplaced(t.name, replacement{v.id, true})
		x.Location.mu.Unlock()
	}
	all := true
	var payloads [][]byte
	for part, d := range found {
		if d == none {
			continue
		}
		if x.refused(part) {
			all = false
			continue
		}
		if payloads == nil {
			var err error
			if payloads, err = x.payloadsOf(ctx, t, v); err != nil {
				return false
			}
		}
		if err := x.makeShard(ctx, t, v, part, payloads); err != nil {
			if ctx.Err() == nil && !isOvertaken(err) {
				x.failed(part, fmt.Errorf("repairing it: %w", err))
			}
			all = false
			continue
		}
		x.mu.Lock()
		x.health.Parts[part].Repaired++
		x.mu.Unlock()
	}
	return all
}

// makeShard makes a shard that no part has and sends it to a part. What the part
// has of newer versions stays, and so does what it has of older ones as long as the
// version may not outlast a power cut.
func (x *examination) makeShard(ctx context.Context, t *tally, v *version, part int, payloads [][]byte) error {
	index := v.vacant(part)
	if t.holds(part, v) {
		index = t.answers[part].has(v.id).index // What is behind it was altered.
	}
	raw, err := x.rebuild(&v.descriptor, payloads, index)
	if err != nil {
		return err
	}
	if t.isChunk() {
		err = x.parts[part].Put(ctx, t.name, raw)
	} else {
		_, err = x.mendAlone(ctx, part, mending{record: v.record(index, raw), stacked: v.stacked, beneath: t})
	}
	if err != nil {
		return err
	}
	v.parts[index] = part
	return nil
}

// vacant returns the index of a shard that no part has: the part's own number, if
// it can be.
func (v *version) vacant(part int) int {
	if v.parts[part] < 0 {
		return part
	}
	for index, holder := range v.parts {
		if holder < 0 {
			return index
		}
	}
	return part
}

// count enters what was wrong with a blob's shards.
func (x *examination) count(found []defect, healed bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	worst := none
	for part, d := range found {
		worst = max(worst, d)
		switch p := &x.health.Parts[part]; d {
		case missing:
			p.Missing++
		case stale:
			p.Stale++
		case corrupt:
			p.Corrupt++
		}
	}
	switch worst {
	case none:
		return
	case missing:
		x.health.Missing++
	case stale:
		x.health.Stale++
	case corrupt:
		x.health.Corrupt++
	}
	if healed {
		x.health.Repaired++
	}
}
