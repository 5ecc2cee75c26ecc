package s3

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"powercloud.unidatum.com/go/blob"
)

// Stat describes a blob; see blob.Location.
//
// It asks for the object's first byte rather than for its headers alone. The
// answer to a HEAD request has no body, so that a missing bucket looks like a
// missing object there, and telling one from the other would take a second
// request for every object that isn't there.
func (l *Location) Stat(ctx context.Context, name blob.Name) (blob.Info, error) {
	if err := blob.CheckCall(ctx, name); err != nil {
		return blob.Info{}, err
	}
	// An object that is empty has no first byte. Then HEAD describes it, unless
	// it has been deleted meanwhile, which only the first request can tell.
	for range tries {
		info, err := l.statByRange(ctx, name)
		if !errors.Is(err, errEmpty) {
			return info, err
		}
		info, err = l.statByHead(ctx, name)
		if !errors.Is(err, errGone) {
			return info, err
		}
	}
	return blob.Info{}, errors.New("the service says of an object that it is empty, and that it isn't there")
}

var (
	errEmpty error = finalError{"the object is empty"}
	errGone  error = finalError{"the object isn't there any more"}
)

func (l *Location) statByRange(ctx context.Context, name blob.Name) (blob.Info, error) {
	info := blob.Info{Name: name}
	err := l.try(ctx, kindStat, wantObject, func(x *exchange) error {
		object, err := l.api.GetObject(ctx, &s3.GetObjectInput{
			Bucket: &l.spec.Bucket, Key: l.key(name), Range: aws.String("bytes=0-0"),
		}, x.options)
		if err != nil {
			if x.status == http.StatusRequestedRangeNotSatisfiable {
				return errEmpty
			}
			return err
		}
		// A byte is read to the end, so that the connection can be used again.
		if err := skip(object.Body); err != nil {
			return err
		}
		info.Mark = mark(aws.ToString(object.ETag))
		info.Size, err = sizeOf(x.status, aws.ToString(object.ContentRange), object.ContentLength)
		return err
	})
	return info, err
}

func (l *Location) statByHead(ctx context.Context, name blob.Name) (blob.Info, error) {
	info := blob.Info{Name: name}
	err := l.try(ctx, kindStat, wantETag, func(x *exchange) error {
		object, err := l.api.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &l.spec.Bucket, Key: l.key(name)}, x.options)
		if err != nil {
			if x.status == http.StatusNotFound {
				return errGone
			}
			return err
		}
		info.Mark = mark(aws.ToString(object.ETag))
		info.Size, err = sizeOf(x.status, "", object.ContentLength)
		return err
	})
	return info, err
}

// skip reads a body that should have a byte, and closes it.
func skip(body io.ReadCloser) error {
	const most = 4 << 10
	_, err := io.CopyN(io.Discard, body, most)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if closeErr := body.Close(); err == nil {
		err = closeErr
	}
	return err
}

// sizeOf returns an object's size as an answer tells it: after the slash of the
// range that was sent, or as the length of the body where the whole object is.
func sizeOf(status int, contentRange string, contentLength *int64) (int64, error) {
	if status != http.StatusPartialContent {
		if size := aws.ToInt64(contentLength); contentLength != nil && size >= 0 {
			return size, nil
		}
		return 0, errors.New("it doesn't tell the object's size")
	}
	digits, ok := strings.CutPrefix(contentRange, "bytes 0-0/")
	size, err := strconv.ParseUint(digits, 10, 63)
	if !ok || err != nil || size == 0 {
		return 0, fmt.Errorf("it doesn't tell the object's size: Content-Range is %.60q", contentRange)
	}
	return int64(size), nil
}

// mark returns the version mark that an ETag makes, which is nothing but a word:
// only sometimes is it the content's MD5.
func mark(etag string) string {
	const longest = 64
	if plain := strings.Trim(etag, `"`); len(plain) <= longest && printable(plain) == plain {
		return plain
	}
	sum := sha256.Sum256([]byte(etag))
	return hex.EncodeToString(sum[:])
}
