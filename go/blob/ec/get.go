package ec

import (
	"context"
	"errors"

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
	offered := map[versionID]bool{}
	var refusal error
	taken := false
	first := l.planFor(name.Kind)
	if accept != nil && name.Kind == blob.KindChunk {
		// A chunk that its reader authenticates needs no sums. They are for telling
		// which shard is to blame when it doesn't.
		first.take = func(t *tally, v *version) bool {
			data, err = l.offer(t, v, buf, limit, accept)
			if taken = err == nil; taken {
				l.mendBehind(ctx, t, v) // which compares what it makes with its sum
			}
			return taken
		}
	}
	for _, p := range []plan{first, l.everything()} {
		t, release, err := l.gather(ctx, name, limit, p)
		if err != nil {
			return nil, false, err
		}
		if taken {
			release()
			return data, false, nil
		}
		found := t.candidates()
		if len(found) > 0 {
			err = t.doubt(found[0])
		} else if t.count(notAsked) == 0 {
			err = t.verdict()
		}
		if err != nil {
			release()
			return nil, t.mayChange() && !errors.Is(err, blob.ErrTooLarge), err
		}
		for _, v := range found {
			if offered[v.id] {
				continue
			}
			offered[v.id] = true
			data, err := l.offer(t, v, buf, limit, accept)
			if err == nil {
				if accept != nil || t.agreed(v) {
					l.mendBehind(ctx, t, v)
				}
				release()
				return data, false, nil
			}
			if errors.Is(err, blob.ErrTooLarge) {
				// An older version that is smaller must not be taken instead.
				release()
				return nil, false, err
			}
			if refusal == nil || errors.Is(refusal, blob.ErrDamaged) {
				refusal = err
			}
		}
		release()
		if t.count(notAsked) == 0 {
			break
		}
	}
	return nil, false, refusal
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
