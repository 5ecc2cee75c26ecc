package s3

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"powercloud.unidatum.com/go/blob"
)

var _ blob.Amender = (*Location)(nil)

// errChanged says that an object isn't the one any more that was read.
var errChanged error = finalError{"the object was replaced meanwhile"}

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
		condition := now.condition
		if try == blob.AmendTries-1 {
			condition = now.etag // It may be a plain one for other objects only.
		}
		next, err := change(now.data, now.err)
		switch {
		case err != nil || next == nil:
			return err
		case errors.Is(now.err, blob.ErrNotFound):
			err = l.CreateAbsent(ctx, name, next)
		case now.etag == now.condition && now.same(refused):
			// The service refuses what it states.
			err = l.Put(ctx, name, next)
		default:
			err = l.putOver(ctx, name, next, condition)
		}
		if !errors.Is(err, blob.ErrExists) && !errors.Is(err, errChanged) {
			return err
		}
		if refused = nil; errors.Is(err, errChanged) {
			refused = now
		}
		if err := l.sleep(ctx, rand.N(contention<<try)); err != nil {
			return err
		}
	}
	return blob.ErrContended
}

// contention is how long to wait, at most, when others have replaced an object; twice as
// long the next time.
const contention = 10 * time.Millisecond

// reading is what was read of an object. err is one that a blob.Change gets.
type reading struct {
	// etag is what the service stated, condition the one to compare with.
	etag, condition string
	sum             [sha256.Size]byte
	data            []byte
	err             error
}

func (r *reading) same(as *reading) bool {
	return as != nil && r.err == nil && as.err == nil && r.etag == as.etag && r.sum == as.sum
}

// readCertain reads an object and makes sure that its ETag is that of what was read: a
// service may state the one of an object that replaces it at that moment. Where an ETag
// isn't the MD5 of the content, as with a key of the user's own, the object is read twice.
func (l *Location) readCertain(ctx context.Context, name blob.Name, limit int64) (*reading, error) {
	var before *reading
	for range blob.AmendTries {
		now := &reading{}
		now.data, now.err = l.getNoting(ctx, name, nil, limit, l.checksums.Load, &now.etag)
		if now.err != nil {
			if !blob.Amendable(now.err) {
				return nil, now.err
			}
			return now, nil
		}
		now.sum = sha256.Sum256(now.data)
		now.condition = now.etag
		if plain := plainETag(now.data); l.notePlain(now.etag, plain) {
			now.condition = plain
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

// putOver stores a blob in the place of the one with an ETag.
func (l *Location) putOver(ctx context.Context, name blob.Name, data []byte, etag string) error {
	sent, refused := 0, false
	err := l.try(ctx, kindPut, wantETag, func(x *exchange) error {
		input := l.putInput(name, data)
		input.IfMatch = aws.String(etag)
		sent++
		stored, err := l.api.PutObject(ctx, input, x.options)
		switch {
		case err == nil:
			l.notePlain(aws.ToString(stored.ETag), plainETag(data))
			return nil
		case x.status == http.StatusPreconditionFailed, x.status == http.StatusConflict, x.document.Code == "NoSuchKey":
			return errChanged
		case x.refusesHeader():
			refused = true
			return errChanged
		}
		return err
	})
	switch {
	case refused:
		return l.Put(ctx, name, data)
	case errors.Is(err, errChanged) && sent > 1:
		// An earlier try may have stored it and only its answer got lost.
		found, getErr := l.Get(ctx, name, nil, int64(len(data)))
		if getErr == nil && bytes.Equal(found, data) {
			return nil
		}
	}
	return err
}
