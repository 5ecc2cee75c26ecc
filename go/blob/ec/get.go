package ec

import (
	"context"
	"errors"
	"fmt"

	"powercloud.unidatum.com/go/blob"
)

// readTries is how often a blob is read that can't be put together: others may be
// replacing it, and each part be seen at another moment.
const readTries = 4

// Get reads a blob; see blob.Location. Its memory is what the shards take that are
// read, which is as much as the blob, besides buf.
func (l *Location) Get(ctx context.Context, name blob.Name, buf []byte, limit int64) ([]byte, error) {
	return l.getAccepted(ctx, name, buf, limit, nil)
}

// GetAccepted reads a blob and offers the versions that can be put together; see
// blob.Chooser.
func (l *Location) GetAccepted(ctx context.Context, name blob.Name, buf []byte, limit int64, accept func([]byte) error) ([]byte, error) {
	return l.getAccepted(ctx, name, buf, limit, accept)
}

// getAccepted is GetAccepted; a nil accept is of a reader that can't tell.
func (l *Location) getAccepted(ctx context.Context, name blob.Name, buf []byte, limit int64, accept func([]byte) error) ([]byte, error) {
	if err := blob.CheckCall(ctx, name); err != nil {
		return nil, err
	}
	data, again, err := l.read(ctx, name, buf, limit, accept)
	for try := 1; again && try < readTries; try++ {
		data, again, err = l.readAlone(ctx, name, buf, limit, accept)
	}
	return data, err
}

// readAlone is read while nobody else in this process replaces the blob.
func (l *Location) readAlone(ctx context.Context, name blob.Name, buf []byte, limit int64, accept func([]byte) error) ([]byte, bool, error) {
	unlock, err := l.names.lock(ctx, name)
	if err != nil {
		return nil, false, err
	}
	defer unlock()
	return l.read(ctx, name, buf, limit, accept)
}

// read reads a blob once. again says that it might be worth another try.
func (l *Location) read(ctx context.Context, name blob.Name, buf []byte, limit int64, accept func([]byte) error) (data []byte, again bool, err error) {
	a := &attempt{Location: l, name: name, buf: buf, limit: limit, accept: accept, offered: map[versionID]bool{}}
	for _, p := range []plan{l.planFor(name.Kind), l.everything()} {
		all, again, err := a.with(ctx, p)
		switch {
		case err != nil:
			return nil, again, err
		case a.taken:
			return a.data, false, nil
		case all:
			return nil, false, a.refusal
		}
	}
	return nil, false, a.refusal
}

// attempt is a read of a blob at work.
type attempt struct {
	*Location
	name   blob.Name
	buf    []byte
	limit  int64
	accept func([]byte) error

	// offered are the versions that the reader has refused, for a reason that refusal is.
	offered map[versionID]bool
	refusal error
	// taken says that the reader has taken data.
	taken bool
	data  []byte
}

// with reads from as many parts as a plan wants, and reports whether all were asked.
func (a *attempt) with(ctx context.Context, p plan) (all, again bool, err error) {
	if a.accept != nil && a.name.Kind == blob.KindChunk {
		// A chunk that its reader authenticates needs no sums. They are for telling
		// which shard is to blame when it doesn't.
		p.take = func(t *tally, v *version) bool { return a.take(ctx, t, v) == nil }
	}
	t, release, err := a.gather(ctx, a.name, a.limit, p)
	if err != nil {
		return false, false, err
	}
	defer release()
	all = t.count(notAsked) == 0
	if a.taken {
		return all, false, nil
	}
	found := t.candidates()
	if len(found) > 0 {
		err = t.doubt(found[0])
	} else if all {
		err = t.verdict()
	}
	if err != nil {
		return all, t.mayChange() && !errors.Is(err, blob.ErrTooLarge), err
	}
	for _, v := range found {
		if a.offered[v.id] {
			continue
		}
		a.offered[v.id] = true
		err := a.take(ctx, t, v)
		if err == nil {
			return all, false, nil
		}
		if errors.Is(err, blob.ErrTooLarge) {
			// An older version that is smaller must not be taken instead.
			return all, false, err
		}
		if a.refusal == nil || errors.Is(a.refusal, blob.ErrDamaged) {
			a.refusal = err
		}
	}
	return all, false, nil
}

// take has the reader judge a version and, if he takes it, parts that lack it mended.
func (a *attempt) take(ctx context.Context, t *tally, v *version) error {
	data, err := a.offer(t, v, a.buf, a.limit, a.accept)
	if err != nil {
		return err
	}
	a.data, a.taken = data, true
	if a.name.Kind == blob.KindManifest {
		a.noteDoubt(t)
	}
	if a.accept != nil || t.agreed(v) {
		a.mendBehind(ctx, t, v) // which compares what it makes with its sum
	}
	return nil
}

// noteDoubt notes when a version was read while so many parts could not tell what they
// have that a newer one may have been acknowledged by them alone.
func (l *Location) noteDoubt(t *tally) {
	if t.uncertain() < t.quorum() {
		return
	}
	err := t.failure(fmt.Sprintf("only %d of %d parts could be read, so there may be newer versions than theirs", t.total-t.uncertain(), t.total))
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.doubt == "" {
		l.doubt = err.Error()
	}
}

// offer puts a version together and has the reader judge it.
func (l *Location) offer(t *tally, v *version, buf []byte, limit int64, accept func([]byte) error) ([]byte, error) {
	if v.size > limit {
		return nil, blob.ErrTooLarge
	}
	data, err := l.join(&v.descriptor, t.payloads(v), buf)
	if err != nil {
		return nil, err
	}
	if accept != nil {
		err = accept(data)
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}
