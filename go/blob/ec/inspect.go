package ec

import (
	"context"
	"errors"
	"slices"

	"powercloud.unidatum.com/go/blob"
)

// inspectLimit is the size of the blobs whose shards are kept in memory while a
// blob is inspected, in bytes.
const inspectLimit = wholeBlob

// inspectedSize returns the size up to which a blob's shards are kept in memory that are
// as long as parts list them: a small chunk should take little.
func (e *entry) inspectedSize(data int) int64 {
	if e.name.Kind != blob.KindChunk {
		return inspectLimit
	}
	return min(slices.Max(e.lengths), inspectLimit/int64(data)) * int64(data)
}

// inspect asks every part for all that it holds of a blob, and compares each shard
// with its sum. Large shards are read one after the other and not kept; large is what
// takes more than limit. release is called when the records aren't needed any more.
func (l *Location) inspect(ctx context.Context, name blob.Name, limit int64) (t *tally, release func(), err error) {
	all := l.everything()
	all.patient = true
	t, release, err = l.gather(ctx, name, limit, all)
	if err != nil {
		return nil, nil, err
	}
	for part := range t.answers {
		if t.answers[part].state != tooLarge {
			continue
		}
		if err := l.memory.Acquire(ctx, largeMemory); err != nil {
			release()
			return nil, nil, err
		}
		l.inspectLarge(ctx, t, part)
		l.memory.Release(largeMemory)
	}
	for _, v := range t.versions {
		t.check(v)
	}
	return t, release, nil
}

// inspectAlone is inspect for somebody who goes on to change the blob: until release,
// nobody else in this process does.
func (l *Location) inspectAlone(ctx context.Context, name blob.Name) (t *tally, release func(), err error) {
	unlock, err := l.names.lock(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	t, give, err := l.inspect(ctx, name, inspectLimit)
	if err != nil {
		unlock()
		return nil, nil, err
	}
	return t, func() {
		give()
		unlock()
	}, nil
}

// inspectLarge asks a part for large shards and keeps their headers only.
func (l *Location) inspectLarge(ctx context.Context, t *tally, part int) {
	a, _ := l.ask(ctx, part, t.name, maxSize)
	t.add(part, a)
	for i := range a.records {
		t.checkPart(part, a.records[i].id)
	}
	for i := range t.answers[part].records {
		r := &t.answers[part].records[i]
		r.sums, r.raw, r.payload = slices.Clone(r.sums), nil, nil
	}
}

// payloadsOf returns as many shards of a version as rebuild it, reading those again
// that inspect didn't keep.
func (l *Location) payloadsOf(ctx context.Context, t *tally, v *version) ([][]byte, error) {
	payloads := make([][]byte, l.total)
	n := 0
	for index, part := range v.parts {
		if part < 0 || n == l.data {
			continue
		}
		r := t.answers[part].has(v.id)
		if r.raw == nil {
			a, _ := l.ask(ctx, part, t.name, maxSize)
			if r = a.has(v.id); r == nil || !r.intact() {
				return nil, errors.New("its shards have changed meanwhile")
			}
		}
		payloads[index] = r.payload
		n++
	}
	return payloads, nil
}
