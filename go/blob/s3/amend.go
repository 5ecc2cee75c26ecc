package s3

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"time"

	"powercloud.unidatum.com/go/blob"
)

var _ blob.Amender = (*Location)(nil)

// Amend changes a blob; see blob.Amender. A service that knows no conditional PUT, as S3
// has had since August and November 2024, or that refuses the ETags which it states,
// can't tell that others have replaced an object between reading and storing.
func (l *Location) Amend(ctx context.Context, name blob.Name, limit int64, change blob.Change) error {
	var refused *reading
	for try := range blob.AmendTries {
		now, err := l.readCertain(ctx, name, limit)
		if err != nil {
			return err
		}
		next, err := change(now.data, now.err)
		if err != nil || next == nil {
			return err
		}
		c := condition{etag: now.condition}
		switch {
		case errors.Is(now.err, blob.ErrNotFound):
			c.none = true
		case try%statedTries == statedTries-1:
			c.etag = now.etag // It may be a plain one for other objects only.
		case now.etag == now.condition && now.same(refused):
			return l.Put(ctx, name, next) // The service refuses what it states.
		}
		if met, err := l.putIf(ctx, name, next, c); met || err != nil {
			return err
		}
		refused = now
		if err := l.sleep(ctx, rand.N(contention<<min(try, contentionDoublings))); err != nil {
			return err
		}
	}
	return blob.ErrContended
}

const (
	// contention is how long to wait, at most, when others have replaced an object; twice
	// as long the next time, until it has doubled so often.
	contention          = 10 * time.Millisecond
	contentionDoublings = 6
	// statedTries is of how many tries one takes the service's word for an ETag that
	// isn't a plain one.
	statedTries = 5
)

// reading is what was read of an object. err is one that a blob.Change gets.
type reading struct {
	// etag is what the service stated, plain what a plain one would be, and condition
	// the one to compare with.
	etag, plain, condition string
	data                   []byte
	err                    error
}

func (r *reading) same(as *reading) bool {
	return as != nil && r.err == nil && as.err == nil && r.etag == as.etag && r.plain == as.plain
}

// readCertain reads an object and makes sure that its ETag is that of what was read: a
// service may state the one of an object that replaces it at that moment. Where an ETag
// isn't the MD5 of the content, as with a key of the user's own, the object is read twice.
func (l *Location) readCertain(ctx context.Context, name blob.Name, limit int64) (*reading, error) {
	var before *reading
	for range blob.AmendTries {
		now := &reading{}
		now.data, now.err = l.getNoting(ctx, name, nil, limit, l.checksums.Load, &now.etag)
		now.condition = now.etag
		if now.err != nil {
			if !blob.Answered(now.err) {
				return nil, now.err
			}
			return now, nil
		}
		now.plain = plainETag(now.data)
		if l.notePlain(now.etag, now.plain) {
			now.condition = now.plain
			return now, nil
		}
		if now.same(before) {
			return now, nil
		}
		before = now
	}
	return nil, blob.ErrContended
}

// plainETag returns the ETag that S3 gives an object which is stored whole and not under
// a key of the user's own: the MD5 of its content.
func plainETag(data []byte) string {
	sum := md5.Sum(data)
	return `"` + hex.EncodeToString(sum[:]) + `"`
}

// notePlain reports whether the location's ETags are known to be plain, given one that
// the service has stated and what it would be then.
func (l *Location) notePlain(stated, plain string) bool {
	if stated == plain {
		l.plainETags.Store(true)
	}
	return l.plainETags.Load()
}
