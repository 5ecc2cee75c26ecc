package s3

import (
	"bytes"
	"context"
	"errors"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"

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
	sent, refused := 0, false
	err := l.try(ctx, kindPut, wantETag, func(x *exchange) error {
		input := l.putInput(name, data)
		input.IfNoneMatch = aws.String("*")
		sent++
		stored, err := l.api.PutObject(ctx, input, x.options)
		switch {
		case err == nil:
			l.notePlain(aws.ToString(stored.ETag), plainETag(data))
			return nil
		case x.status == http.StatusPreconditionFailed:
			return errPrecondition
		case x.refusesHeader():
			refused = true
			return errPrecondition
		}
		return err
	})
	switch {
	case refused:
		return l.Put(ctx, name, data)
	case !errors.Is(err, errPrecondition):
		return err
	case sent == 1:
		return blob.ErrExists
	}
	// An earlier try may have created it and only its answer got lost.
	found, err := l.Get(ctx, name, nil, int64(len(data)))
	switch {
	case err == nil && bytes.Equal(found, data):
		return nil
	case err == nil, errors.Is(err, blob.ErrTooLarge):
		return blob.ErrExists
	}
	return err
}

// errPrecondition says that the service didn't store an object because of the
// condition.
var errPrecondition error = finalError{"there is such an object already"}
