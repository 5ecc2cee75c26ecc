// Package s3 keeps blobs in a bucket of an S3-compatible service.
//
// # What it relies on
//
// A service answers a PUT once the object is stored durably, and replaces an
// object in one step: both are what S3 promises, so Flush has nothing to do. A
// PUT that fails may have been carried out all the same, when only its answer
// got lost; the object is then the new one, whole.
//
// # What it doesn't believe
//
// The service may be hostile, and what answers in its name may be a proxy or a
// hotel's login page. Every answer is bounded in size and in time. Only an
// answer that says so in S3's terms makes an object absent: a missing bucket, a
// 404 of a web server or an answer without a body doesn't. Listings must make
// progress. What the objects contain is for the caller to authenticate.
package s3

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/concurrency"
)

// How many requests are under way at once: startRequests at first, and at most
// maxRequests, however far away the service is.
const (
	startRequests = 8
	maxRequests   = 64
)

// Location is a bucket, or a prefix in one. It keeps connections open for a
// while and needs no closing.
type Location struct {
	given     string
	spec      blob.S3Spec
	variables Variables

	api      *s3.Client
	client   *http.Client
	limiter  *concurrency.Limiter
	patience patience
	sleep    func(context.Context, time.Duration) error

	// checksums says that the service is asked for an object's checksum. It is
	// unset for good once the service refuses to be asked.
	checksums atomic.Bool
	// unconditional is set for good once the service refuses an upload's condition.
	unconditional atomic.Bool
	// plainETags is set once an ETag was seen to be the MD5 of the content.
	plainETags atomic.Bool
}

var (
	_ blob.Location   = (*Location)(nil)
	_ blob.Chooser    = (*Location)(nil)
	_ blob.Creator    = (*Location)(nil)
	_ blob.Looker     = (*Location)(nil)
	_ blob.Completer  = (*Location)(nil)
	_ blob.Concurrent = (*Location)(nil)
)

// Options are what a Location takes from its surroundings. The zero value is
// right for a program that a person runs.
type Options struct {
	// Getenv looks up the variables that hold the credentials; os.Getenv when
	// nil.
	Getenv func(string) string
	// HTTP makes the requests; NewHTTPClient's when nil. It must not follow
	// redirects.
	HTTP *http.Client
}

// New returns the location that spec, which is of an S3 bucket, describes. It
// asks the service nothing. It fails if the credentials aren't in the
// environment.
func New(spec blob.Spec, options Options) (*Location, error) {
	if spec.Scheme != blob.SchemeS3 {
		return nil, fmt.Errorf("%s is not an S3 bucket", spec)
	}
	if options.Getenv == nil {
		options.Getenv = os.Getenv
	}
	if options.HTTP == nil {
		options.HTTP = NewHTTPClient()
	}
	variables := VariablesOf(spec.S3)
	credentials, err := variables.read(options.Getenv)
	if err != nil {
		return nil, err
	}
	l := &Location{
		given: spec.String(), spec: spec.S3, variables: variables,
		client:   options.HTTP,
		limiter:  concurrency.New(concurrency.Options{Start: startRequests, Max: maxRequests}),
		patience: patience{idle: 30 * time.Second, grace: time.Minute, rate: 4 << 10},
		sleep:    sleep,
	}
	l.checksums.Store(true)
	l.api = s3.New(s3.Options{
		Region:       spec.S3.Region,
		BaseEndpoint: aws.String(spec.S3.Endpoint),
		UsePathStyle: spec.S3.PathStyle,
		Credentials:  provider(credentials),
		// Tries are counted here: reading an answer is part of one, which the
		// SDK's own don't include.
		Retryer: aws.NopRetryer{},
		// By default the SDK adds a CRC to every upload, as a trailer of a body
		// in chunks whose content isn't signed. R2 and B2 refuse the headers,
		// others the trailer. The SHA-256 of the body, which all of them check
		// as part of the signature, does the same and more.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		// Get asks for checksums itself, as long as the service lets it.
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
		// A wrong clock is reported. Following the time that a service states
		// would let it collect signatures for the future.
		DisableClockSkewCorrection:                true,
		DisableLogOutputChecksumValidationSkipped: true,
		DisableS3ExpressSessionAuth:               aws.Bool(true),
		// No "Expect: 100-continue": it costs every large upload a round trip.
		ContinueHeaderThresholdBytes: -1,
		Logger:                       logging.Nop{},
		APIOptions:                   []func(*middleware.Stack) error{signPayload},
	})
	return l, nil
}

// signPayload has the signature cover every upload's body, over HTTPS too, where
// the SDK would leave it out.
func signPayload(stack *middleware.Stack) error {
	signed := &v4.ComputePayloadSHA256{}
	_, err := stack.Finalize.Swap(signed.ID(), signed)
	return err
}

// String returns the location as it was given. It holds no secrets.
func (l *Location) String() string { return l.given }

// Concurrency returns how many requests can be worth having under way; see
// blob.Concurrent.
func (l *Location) Concurrency() int { return maxRequests }

// smallBlob is the size up to which a blob is sent without asking whether it is
// there, in bytes: the question would take as long.
const smallBlob = 64 << 10

// PutMissing stores a blob whose name determines its content, unless the bucket has
// it; see blob.Completer.
func (l *Location) PutMissing(ctx context.Context, name blob.Name, data []byte) error {
	if len(data) > smallBlob {
		return blob.PutUnlessThere(ctx, l, name, data)
	}
	return l.Put(ctx, name, data)
}

// host returns the host of the service, for error messages.
func (l *Location) host() string {
	endpoint, err := url.Parse(l.spec.Endpoint)
	if err != nil {
		return l.spec.Endpoint
	}
	return endpoint.Host
}

// key returns a blob's key in the bucket.
func (l *Location) key(name blob.Name) *string { return aws.String(l.prefix() + key(name)) }

// prefix returns what all keys of the location begin with.
func (l *Location) prefix() string {
	if l.spec.Prefix == "" {
		return ""
	}
	return l.spec.Prefix + "/"
}

// Probe returns nil when the bucket can be listed.
func (l *Location) Probe(ctx context.Context) error {
	_, err := l.page(ctx, &s3.ListObjectsV2Input{Prefix: aws.String(l.prefix()), MaxKeys: aws.Int32(1)})
	return err
}

// Flush returns nil unless ctx is done: what the service has acknowledged is
// durable.
func (l *Location) Flush(ctx context.Context) error { return ctx.Err() }

// Put stores a blob; see blob.Location.
func (l *Location) Put(ctx context.Context, name blob.Name, data []byte) error {
	if err := blob.CheckCall(ctx, name); err != nil {
		return err
	}
	return l.try(ctx, kindPut, wantETag, func(x *exchange) error {
		_, err := l.api.PutObject(ctx, l.putInput(name, data), x.options)
		return err
	})
}

func (l *Location) putInput(name blob.Name, data []byte) *s3.PutObjectInput {
	return &s3.PutObjectInput{
		Bucket: &l.spec.Bucket, Key: l.key(name), Body: bytes.NewReader(data), ContentLength: aws.Int64(int64(len(data))),
		ContentType: aws.String("application/octet-stream"),
	}
}

// Get reads a blob; see blob.Location. What was altered on the way is read again.
func (l *Location) Get(ctx context.Context, name blob.Name, buf []byte, limit int64) ([]byte, error) {
	return l.getTrying(ctx, name, buf, limit, l.checksums.Load)
}

// GetAccepted reads a blob that its reader can authenticate; see blob.Chooser. A
// checksum takes as long to compute as the reader takes to decrypt. So the service is
// asked for one only when a blob isn't authentic: it may have been altered on the way.
func (l *Location) GetAccepted(ctx context.Context, name blob.Name, buf []byte, limit int64, accept func([]byte) error) ([]byte, error) {
	unasked := func() bool { return false }
	var refusal error
	for _, checksum := range []func() bool{unasked, l.checksums.Load} {
		data, err := l.getTrying(ctx, name, buf, limit, checksum)
		if err != nil {
			return nil, err
		}
		if refusal = accept(data); refusal == nil {
			return data, nil
		}
	}
	return nil, refusal
}

// getTrying reads a blob. checksum says before each try whether to ask for a checksum.
func (l *Location) getTrying(ctx context.Context, name blob.Name, buf []byte, limit int64, checksum func() bool) (data []byte, err error) {
	return l.getNoting(ctx, name, buf, limit, checksum, new(string))
}

// getNoting is getTrying, and notes the ETag of what it reads.
func (l *Location) getNoting(ctx context.Context, name blob.Name, buf []byte, limit int64, checksum func() bool, etag *string) (data []byte, err error) {
	if err := blob.CheckCall(ctx, name); err != nil {
		return nil, err
	}
	err = l.try(ctx, kindGet, wantObject, func(x *exchange) error {
		asked := checksum()
		data, err = l.get(ctx, x, name, buf, limit, asked, etag)
		if asked && err != nil && x.refusesHeader() {
			l.checksums.Store(false)
			x.reset()
			data, err = l.get(ctx, x, name, buf, limit, false, etag)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return data, nil
}

func (l *Location) get(ctx context.Context, x *exchange, name blob.Name, buf []byte, limit int64, checksum bool, etag *string) ([]byte, error) {
	input := &s3.GetObjectInput{Bucket: &l.spec.Bucket, Key: l.key(name)}
	if checksum {
		input.ChecksumMode = types.ChecksumModeEnabled
	}
	object, err := l.api.GetObject(ctx, input, x.options)
	if err != nil {
		return nil, err
	}
	*etag = aws.ToString(object.ETag)
	limit = min(limit, maxObject)
	size := int64(-1)
	if object.ContentLength != nil {
		size = *object.ContentLength
	}
	if size > limit {
		_ = object.Body.Close()
		return nil, blob.ErrTooLarge
	}
	data, err := readAll(object.Body, buf, size, limit)
	if closeErr := object.Body.Close(); err == nil {
		err = closeErr
	}
	return data, err
}

// mostAtOnce is how much memory is taken for an object that a service says is
// large, before that much has arrived.
const mostAtOnce = 8 << 20

// readAll reads a body of size bytes, or of unknown length if that is negative,
// but no more than limit, into buf's memory if that is enough.
func readAll(body io.Reader, buf []byte, size, limit int64) ([]byte, error) {
	data := buf[:0]
	if wanted := min(max(size, 0), mostAtOnce); int64(cap(data)) < wanted {
		data = make([]byte, 0, wanted)
	}
	for {
		if len(data) == cap(data) {
			// Whether that was the end tells a byte more.
			var one [1]byte
			n, err := body.Read(one[:])
			switch {
			case n > 0 && int64(len(data)) >= limit:
				return nil, blob.ErrTooLarge
			case n > 0:
				data = append(data, one[0])
			}
			if done, err := ended(err, int64(len(data)), size); done {
				return data, err
			}
			continue
		}
		n, err := body.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if int64(len(data)) > limit {
			return nil, blob.ErrTooLarge
		}
		if done, err := ended(err, int64(len(data)), size); done {
			return data, err
		}
	}
}

// ended says whether reading is over, and what is to be said of it.
func ended(err error, length, size int64) (bool, error) {
	switch {
	case err == nil:
		return false, nil
	case err != io.EOF:
		return true, err
	case size >= 0 && length != size:
		return true, fmt.Errorf("it has %d bytes instead of the %d announced", length, size)
	}
	return true, nil
}

// Delete removes a blob; see blob.Location.
func (l *Location) Delete(ctx context.Context, name blob.Name) error {
	if err := blob.CheckCall(ctx, name); err != nil {
		return err
	}
	err := l.try(ctx, kindDelete, wantEmpty, func(x *exchange) error {
		_, err := l.api.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &l.spec.Bucket, Key: l.key(name)}, x.options)
		return err
	})
	if errors.Is(err, blob.ErrNotFound) {
		// S3 reports none; some services do.
		return nil
	}
	return err
}

// NewHTTPClient returns a client for S3 services. It takes proxies from the
// environment, trusts the certificates that the system does and follows no
// redirects.
func NewHTTPClient() *http.Client {
	const patience = 10 * time.Second
	return &http.Client{
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: patience, KeepAlive: 15 * time.Second}).DialContext,
			TLSHandshakeTimeout: patience,
			TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12},
			// HTTP/1.1: many connections carry more over a long way than the
			// streams of one do.
			MaxIdleConnsPerHost:    maxRequests,
			IdleConnTimeout:        time.Minute,
			MaxResponseHeaderBytes: 64 << 10,
			// What arrives is what is counted and checked.
			DisableCompression: true,
			WriteBufferSize:    64 << 10,
			ReadBufferSize:     64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
