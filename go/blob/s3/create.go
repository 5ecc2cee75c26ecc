package s3

import (
	"bytes"
	"context"
	"errors"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"powercloud.unidatum.com/go/blob"
)

// Create stores a blob where there is none; see blob.Creator. A service that
// knows no conditional PUT, as S3 has had since August 2024, can't tell of two
// that create a blob at the same moment which was first.
func (l *Location) Create(ctx context.Context, name blob.Name, data []byte) error {
	// First, as a service may take the condition and pay no heed to it.
	switch _, err := l.Stat(ctx, name); {
	case err == nil:
		return blob.ErrExists
	case !errors.Is(err, blob.ErrNotFound):
		return err
	}
	return l.CreateAbsent(ctx, name, data)
}

// CreateAbsent is Create for somebody who has just looked; see blob.Looker.
func (l *Location) CreateAbsent(ctx context.Context, name blob.Name, data []byte) error {
	met, err := l.putIf(ctx, name, data, condition{none: true})
	if err == nil && !met {
		return blob.ErrExists
	}
	return err
}

// condition is what an upload is to depend on: that there is no object, or the one with an
// ETag.
type condition struct {
	none bool
	etag string
}

func (c condition) set(input *s3.PutObjectInput) {
	if c.none {
		input.IfNoneMatch = aws.String("*")
	} else {
		input.IfMatch = aws.String(c.etag)
	}
}

// errUnmet says that the service didn't store an object because of the condition.
var errUnmet error = finalError{"there is another object"}

// putIf stores a blob on a condition, and reports whether it was met. Where the service
// refuses conditions, it counts as met.
func (l *Location) putIf(ctx context.Context, name blob.Name, data []byte, c condition) (met bool, err error) {
	if l.unconditional.Load() {
		return true, l.Put(ctx, name, data)
	}
	sent, refused := 0, false
	err = l.try(ctx, kindPut, wantETag, func(x *exchange) error {
		input := l.putInput(name, data)
		c.set(input)
		sent++
		stored, err := l.api.PutObject(ctx, input, x.options)
		switch {
		case err == nil:
			l.notePlain(aws.ToString(stored.ETag), plainETag(data))
			return nil
		case x.unmet():
			return errUnmet
		case x.refusesHeader():
			refused = true
			return errUnmet
		}
		return err
	})
	switch {
	case !errors.Is(err, errUnmet):
		return err == nil, err
	case refused:
		l.unconditional.Store(true)
		return true, l.Put(ctx, name, data)
	case sent == 1:
		return false, nil
	}
	// An earlier try may have stored it and only its answer got lost.
	found, err := l.Get(ctx, name, nil, int64(len(data)))
	if err != nil && !blob.Answered(err) {
		return false, err
	}
	return err == nil && bytes.Equal(found, data), nil
}

// unmet reports whether a conditional upload was refused because of what there is: 412, 409
// while another upload goes on, or 404 if the object to be replaced is gone.
func (x *exchange) unmet() bool {
	return x.status == http.StatusPreconditionFailed || x.status == http.StatusConflict && x.document.Code == "ConditionalRequestConflict" ||
		x.status == http.StatusNotFound && x.document.Code == "NoSuchKey"
}
