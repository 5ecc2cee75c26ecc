package ec

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"

	"powercloud.unidatum.com/go/blob"
)

var _ blob.Superseder = (*Location)(nil)

// Supersede stores a blob unless one that is there is to stay; see blob.Superseder. Of
// several versions that can be put together, stays is asked about each. One that stays
// becomes the one that is read, if others have stored something in front of it.
func (l *Location) Supersede(ctx context.Context, name blob.Name, limit int64, data []byte, stays func([]byte) bool) error {
	if err := blob.CheckCall(ctx, name); err != nil {
		return err
	}
	if name.Kind == blob.KindChunk {
		return l.PutMissing(ctx, name, data) // Its name determines what stays.
	}
	return l.supersedeUnless(ctx, name, limit, data, stays)
}

// supersedeUnless is Supersede. Without stays, nothing stays but the blob itself.
func (l *Location) supersedeUnless(ctx context.Context, name blob.Name, limit int64, data []byte, stays func([]byte) bool) error {
	for range blob.AmendTries {
		if err := l.supersedeOnce(ctx, name, limit, data, stays); !isOvertaken(err) {
			return err
		}
	}
	return blob.ErrContended
}

// supersedeOnce is supersedeUnless as long as nobody else stores a version at the same
// time.
func (l *Location) supersedeOnce(ctx context.Context, name blob.Name, limit int64, data []byte, stays func([]byte) bool) error {
	t, release, err := l.inspectSettled(ctx, name)
	if err != nil {
		return err
	}
	defer release()
	found := t.candidates()
	var rivals []*version // Each may be to stay.
	if stays != nil {
		rivals = found
	}
	for _, v := range rivals {
		there, err := l.content(ctx, t, v, limit)
		if !blob.Answered(err) || errors.Is(err, blob.ErrTooLarge) {
			return err
		}
		if err != nil || bytes.Equal(there, data) || !stays(bytes.Clone(there)) {
			continue
		}
		if v == found[0] {
			return l.adopt(ctx, t, v)
		}
		return l.replaceSeen(ctx, t, there, true)
	}
	if len(found) > 0 && l.is(found[0], data) {
		return l.adopt(ctx, t, found[0])
	}
	return l.replaceSeen(ctx, t, data, true)
}

// inspectSettled is inspectAlone, once more if somebody seems to be storing a version just
// then: what that looks like, one that was cut short does as well.
func (l *Location) inspectSettled(ctx context.Context, name blob.Name) (t *tally, release func(), err error) {
	t, release, err = l.inspectAlone(ctx, name)
	if err != nil || !t.arriving() {
		return t, release, err
	}
	release()
	return l.inspectAlone(ctx, name)
}

// arriving reports whether some parts have a version, newer than the one that is read, of
// which too few shards are there.
func (t *tally) arriving() bool {
	best := t.best()
	return slices.ContainsFunc(t.versions, func(v *version) bool {
		return 0 < v.count && v.count < t.data && (best == nil || newer(v.sequence, v.id, best.sequence, best.id))
	})
}

// content returns a version's blob, of at most limit bytes.
func (l *Location) content(ctx context.Context, t *tally, v *version, limit int64) ([]byte, error) {
	if v.size > limit {
		return nil, blob.ErrTooLarge
	}
	payloads, err := l.payloadsOf(ctx, t, v)
	if err != nil {
		return nil, err
	}
	return l.join(&v.descriptor, payloads, nil)
}

// is reports whether a version is this blob.
func (l *Location) is(v *version, data []byte) bool {
	if v.size != int64(len(data)) {
		return false
	}
	made, err := l.encode(v.name, v.sequence, data)
	if err != nil {
		return false
	}
	defer made.release()
	return made.id() == v.id
}

// adopt has the parts that lack a shard of a version sent theirs. What there is of it
// counts as written now, whoever wrote it.
func (l *Location) adopt(ctx context.Context, t *tally, v *version) error {
	payloads := sync.OnceValues(func() ([][]byte, error) { return l.payloadsOf(ctx, t, v) })
	errs := l.each(func(i int, part blob.Location) error {
		if t.answers[i].state == unreachable {
			return t.answers[i].err
		}
		if t.holds(i, v) {
			// A flush covers what others wrote only once it was found with Stat.
			_, err := part.Stat(ctx, t.name)
			return err
		}
		known, err := payloads()
		if err != nil {
			return err
		}
		made, err := l.rebuild(&v.descriptor, known, i)
		if err != nil {
			return err
		}
		_, err = l.mendAlone(ctx, i, mending{record: v.record(i, made), stacked: v.stacked, beneath: t})
		return err
	})
	if slices.ContainsFunc(errs, isOvertaken) {
		return errOvertaken
	}
	if err := l.acknowledge(ctx, errs); err != nil {
		return err
	}
	if v.stacked {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.noteReplaced(t.name, replacement{v.id, true})
	}
	return nil
}
