package s3

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// The most that an answer may have, in bytes.
const (
	// maxObject bounds any answer; no blob comes near it.
	maxObject = 256 << 20
	// maxListing bounds a page of a listing: a thousand keys of a kilobyte each,
	// with every byte of them escaped, and as much again.
	maxListing = 16 << 20
	// maxError bounds the description of an error, and what comes with an
	// answer that should have no body.
	maxError = 1 << 20
)

// errAnswerTooLarge says that a service sends more than any answer has.
var errAnswerTooLarge = errors.New("the service's answer is larger than any may be")

// want says what the answer to a successful request has for a body.
type want uint8

const (
	// wantEmpty is an answer without a body.
	wantEmpty want = iota
	// wantETag is an answer about an object, whose body doesn't matter.
	wantETag
	// wantObject is an object.
	wantObject
	// wantListing is a page of a listing.
	wantListing
)

// exchange is one request and its answer, as they go over the line. It stands
// between the SDK and the network, which the SDK trusts more than this package
// does: it bounds what the service sends, takes nothing for an answer that isn't
// one, and keeps what the SDK's errors don't say.
type exchange struct {
	client   *http.Client
	patience patience
	want     want

	// status is 0 as long as there is no answer.
	status int
	header http.Header
	// root is the root element's name, of an answer in XML, and document what it
	// says if it describes an error.
	root     string
	document errorDocument
	// fault is why there is no answer, or why it can't be used.
	fault error
	// moved is how many bytes of bodies went over the line.
	moved int64
}

// options has the SDK send one call's request through the exchange.
func (x *exchange) options(o *s3.Options) { o.HTTPClient = x }

// Do sends the request and returns the answer; see http.Client. What it returns
// as an answer of success is one.
func (x *exchange) Do(request *http.Request) (*http.Response, error) {
	ctx, watch := watched(request.Context(), x.patience)
	request = request.WithContext(ctx)
	if request.Body != nil && request.Body != http.NoBody {
		x.moved += max(request.ContentLength, 0)
		request.Body = &watchedBody{ReadCloser: request.Body, watch: watch, left: math.MaxInt64}
	}
	answer, err := x.client.Do(request)
	if err != nil {
		watch.stop()
		x.fault = stalledOr(ctx, err)
		return nil, x.fault
	}
	x.status, x.header = answer.StatusCode, answer.Header
	body := &watchedBody{ReadCloser: answer.Body, watch: watch, left: maxError, done: watch.stop}
	succeeded := x.status/100 == 2
	switch {
	case succeeded && x.want == wantObject && answer.Header.Get("Etag") != "":
		body.left = maxObject
		answer.Body = objectBody{body, ctx, x}
		return answer, nil
	case succeeded && x.want == wantListing:
		body.left = maxListing
	}
	if request.Method != http.MethodHead {
		err = x.readAll(ctx, answer, body)
	}
	if closeErr := body.Close(); err == nil {
		err = closeErr
	}
	if err == nil && succeeded {
		err = x.checkSuccess(answer)
	}
	if err != nil {
		x.fault = err
		return nil, err
	}
	return answer, nil
}

// readAll reads the body of an answer other than an object, for the SDK to read
// it from memory.
func (x *exchange) readAll(ctx context.Context, answer *http.Response, body io.Reader) error {
	content, err := io.ReadAll(body)
	x.moved += int64(len(content))
	if errors.Is(err, errAnswerTooLarge) && x.want != wantListing {
		return errNoAnswer
	}
	if err != nil {
		return stalledOr(ctx, err)
	}
	answer.Body = io.NopCloser(bytes.NewReader(content))
	x.root = rootElement(content)
	x.document, _ = parseError(content)
	return nil
}

// errNoAnswer says that what looks like a success isn't an S3 service's: it may
// come from a proxy, or from a network that wants a login first.
var errNoAnswer = errors.New("what answers is no S3 service; check endpoint= and the network")

// checkSuccess looks whether an answer that reports success is one, of an S3
// service. A service can send the headers of a success and describe an error in
// the body.
func (x *exchange) checkSuccess(answer *http.Response) error {
	switch {
	case x.document.Code != "":
		return fmt.Errorf("the service reports an error as a success: %s", x.document)
	case x.want == wantListing && x.root != "ListBucketResult",
		x.want == wantEmpty && x.moved > 0,
		// Every object has an ETag. An object with one doesn't come here.
		x.want == wantETag && answer.Header.Get("Etag") == "", x.want == wantObject:
		return errNoAnswer
	}
	return nil
}

// refusesHeader says whether an error can mean that the service doesn't know a
// header of the request. B2 answers 400 InvalidArgument ("Unsupported header
// 'x-amz-checksum-mode' received for this API call.", as in vatesfr/xen-orchestra
// issue 8358), R2 501 NotImplemented ("Header 'x-amz-checksum-crc32' with value
// '...' not implemented", as in f2face/cloudflare-r2 issue 12).
func (x *exchange) refusesHeader() bool {
	switch x.document.Code {
	case "InvalidArgument", "InvalidRequest", "NotImplemented":
		return x.status == http.StatusBadRequest || x.status == http.StatusNotImplemented
	}
	return false
}

// reset makes the exchange ready for another request.
func (x *exchange) reset() {
	*x = exchange{client: x.client, patience: x.patience, want: x.want}
}

// stalledOr returns errStalled if that is why a request has ended, and err
// otherwise.
func stalledOr(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errStalled) {
		return errStalled
	}
	return err
}

// objectBody is the body of an object on its way to the SDK.
type objectBody struct {
	*watchedBody
	ctx context.Context // of the request; a body has no other way to it
	x   *exchange
}

func (b objectBody) Read(p []byte) (int, error) {
	n, err := b.watchedBody.Read(p)
	b.x.moved += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		err = stalledOr(b.ctx, err)
	}
	return n, err
}

// errorDocument is what a service says of an error.
type errorDocument struct {
	XMLName xml.Name `xml:"Error"`
	Code    string
	Message string
	// Region is the bucket's, in answers to requests signed for another.
	Region string
	// Endpoint is where the bucket is, in redirects.
	Endpoint string
}

// maxWords bounds what is shown of a service's own words, in bytes.
const maxWords = 200

// String returns the code and the message, fit for one line of a terminal.
func (d errorDocument) String() string {
	code, message := printable(d.Code), printable(d.Message)
	switch {
	case message == "":
		return code
	case code == "":
		return message
	}
	return code + ": " + message
}

// parseError reads the XML that describes an error. Anything else is none.
func parseError(content []byte) (errorDocument, bool) {
	var found errorDocument
	if rootElement(content) != "Error" || xml.Unmarshal(content, &found) != nil {
		return errorDocument{}, false
	}
	return found, found.Code != ""
}

// rootElement returns the name of an XML document's root element, or "".
func rootElement(content []byte) string {
	decoder := xml.NewDecoder(bytes.NewReader(content))
	for {
		token, err := decoder.RawToken()
		if err != nil {
			return ""
		}
		if element, ok := token.(xml.StartElement); ok {
			return element.Name.Local
		}
	}
}
