package s3

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"powercloud.unidatum.com/go/blob"
)

// Bounds of a scan, which keep a service from making it endless. Honest ones
// come nowhere near.
const (
	// maxBlobs is how many blobs there may be: four pebibytes of chunks.
	maxBlobs = 1 << 30
	// maxForeign is how many other keys there may be among them.
	maxForeign = 1 << 20
	// maxIdlePages is how many pages in a row may bring nothing new. A service
	// can send such pages after much was deleted.
	maxIdlePages = 100
	// maxToken bounds a continuation token, in bytes. It may hold a key, encoded.
	maxToken = 8 << 10
)

// scan reads the part of a listing whose blobs' IDs begin with digits, page by
// page. S3 lists keys in the order of their bytes, and a scan insists on it for
// blobs: what is in order comes to an end.
type scan struct {
	location *Location
	kind     blob.Kind
	digits   string
	// after leaves out the blobs up to that ID.
	after blob.Name

	token   string
	done    bool
	last    blob.Name // the last blob so far, if there are any
	lastKey string    // the last key so far, of a blob or not
	idle    int       // how many pages in a row have brought nothing new
	blobs   int       // so far
	foreign int       // keys that are no blobs, so far
}

// run sends all pages.
func (s *scan) run(ctx context.Context, pages chan<- []blob.Info) error {
	for !s.done {
		page, err := s.next(ctx)
		if err != nil {
			return err
		}
		select {
		case pages <- page:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// next reads the next page.
func (s *scan) next(ctx context.Context) ([]blob.Info, error) {
	input := &s3.ListObjectsV2Input{Prefix: aws.String(s.location.prefix() + folder(s.kind) + s.digits)}
	if s.token != "" {
		input.ContinuationToken = aws.String(s.token)
	}
	page, err := s.location.page(ctx, input)
	if err != nil {
		return nil, err
	}
	reached := s.lastKey
	infos := make([]blob.Info, 0, len(page.Contents))
	for _, object := range page.Contents {
		info, ok, err := s.read(object, page.EncodingType)
		if err != nil {
			return nil, fmt.Errorf("the service's listing can't be used: %w", err)
		}
		if ok {
			infos = append(infos, info)
		}
	}
	s.idle++
	if s.lastKey > reached {
		s.idle = 0
	}
	if err := s.turn(page); err != nil {
		return nil, fmt.Errorf("the service's listing can't be used: %w", err)
	}
	return infos, nil
}

// read takes one object of a listing. What isn't a blob of ours is passed over.
func (s *scan) read(object types.Object, encoding types.EncodingType) (blob.Info, bool, error) {
	text := aws.ToString(object.Key)
	if encoding == types.EncodingTypeUrl {
		var err error
		if text, err = url.QueryUnescape(text); err != nil {
			text = ""
		}
	}
	s.lastKey = max(s.lastKey, text)
	below, ok := strings.CutPrefix(text, s.location.prefix())
	name, isBlob := parseKey(s.kind, below)
	if !ok || !isBlob || !strings.HasPrefix(below, folder(s.kind)+s.digits) {
		s.foreign++
		return blob.Info{}, false, nil
	}
	info := blob.Info{Name: name, Size: aws.ToInt64(object.Size), Mark: mark(aws.ToString(object.ETag))}
	switch {
	case s.blobs > 0 && !before(s.last, name):
		return info, false, fmt.Errorf("%s comes twice or out of order", name)
	case object.Size == nil || info.Size < 0 || info.Mark == "":
		return info, false, fmt.Errorf("it tells no size or no ETag of %s", name)
	}
	s.last = name
	s.blobs++
	return info, s.after == (blob.Name{}) || before(s.after, name), nil
}

func before(a, b blob.Name) bool { return bytes.Compare(a.ID[:], b.ID[:]) < 0 }

// turn prepares for the page after this one, if there is one.
func (s *scan) turn(page *s3.ListObjectsV2Output) error {
	if !aws.ToBool(page.IsTruncated) {
		s.done = true
		return nil
	}
	token := aws.ToString(page.NextContinuationToken)
	switch {
	case token == "":
		return fmt.Errorf("it is cut off without a continuation token")
	case token == s.token:
		return fmt.Errorf("it repeats a continuation token")
	case len(token) > maxToken:
		return fmt.Errorf("its continuation token is longer than %d bytes", maxToken)
	case s.idle > maxIdlePages:
		return fmt.Errorf("its last %d pages have brought nothing new", s.idle)
	case s.foreign > maxForeign:
		return fmt.Errorf("there are more than %d other objects in it; give the location a prefix of its own", maxForeign)
	case s.blobs > maxBlobs:
		return fmt.Errorf("there are more than %d blobs in it", maxBlobs)
	}
	s.token = token
	return nil
}

const (
	// fewPages is how many more pages are read one after the other.
	fewPages = 3
	// manyBlobs is from how many blobs on a listing is read in 256 scans rather
	// than 16: then each has half a page at least.
	manyBlobs = 256 * 500
)

// split returns the scans for what comes after a first page. IDs are spread
// evenly, so how far the page has come tells about how many blobs there are.
func (s *scan) split() []*scan {
	if s.blobs == 0 {
		return []*scan{s}
	}
	const all = 1 << 16
	seen := 1 + int(s.last.ID[0])<<8 + int(s.last.ID[1])
	blobs := s.blobs * all / seen
	if blobs <= (1+fewPages)*s.blobs {
		return []*scan{s}
	}
	digits := 1
	if blobs >= manyBlobs {
		digits = 2
	}
	var scans []*scan
	for n := (seen - 1) >> (16 - 4*digits); n < 1<<(4*digits); n++ {
		part := &scan{location: s.location, kind: s.kind, digits: fmt.Sprintf("%0*x", digits, n)}
		if len(scans) == 0 {
			part.after = s.last
		}
		scans = append(scans, part)
	}
	return scans
}

// page reads a page of a listing of the bucket.
func (l *Location) page(ctx context.Context, input *s3.ListObjectsV2Input) (page *s3.ListObjectsV2Output, err error) {
	input.Bucket = &l.spec.Bucket
	// Keys of others may have characters that XML can't hold.
	input.EncodingType = types.EncodingTypeUrl
	err = l.try(ctx, kindList, wantListing, func(x *exchange) error {
		page, err = l.api.ListObjectsV2(ctx, input, x.options)
		return err
	})
	return page, err
}
