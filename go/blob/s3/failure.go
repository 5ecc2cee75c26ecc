package s3

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/aws/smithy-go"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/concurrency"
)

// failure is a request that didn't succeed.
type failure struct {
	// err is what to say of it, in a line.
	err error
	// again says that another try may succeed.
	again bool
	// after is how long the service asks to wait before that, or 0.
	after time.Duration
	pace  concurrency.Outcome
}

// judge says what a failed request means, of which the SDK says err.
func (l *Location) judge(ctx context.Context, x *exchange, err error) failure {
	if ctxErr := ctx.Err(); ctxErr != nil {
		return failure{err: ctxErr, pace: concurrency.Unknown}
	}
	var final finalError
	switch {
	case errors.Is(err, errStalled):
		return failure{err: errStalled, again: true, pace: concurrency.Overloaded}
	case errors.As(err, &final), errors.Is(err, blob.ErrTooLarge):
		return failure{err: err}
	case errors.Is(x.fault, errAnswerTooLarge):
		return failure{err: x.fault}
	case x.status == 0 && x.fault != nil:
		return l.judgeNetwork(x.fault)
	case x.status == 0:
		// The SDK didn't come to send it.
		return failure{err: fmt.Errorf("the request can't be made: %w", err), pace: concurrency.Unknown}
	case x.fault != nil, x.status/100 == 2:
		// The answer broke off, isn't what was sent, or isn't an S3 service's.
		return failure{err: unusable(x, err), again: true}
	}
	return l.judgeStatus(x)
}

// finalError is one that another try can't mend.
type finalError struct{ text string }

func (e finalError) Error() string { return e.text }

// finalf returns a finalError.
func finalf(format string, args ...any) error { return finalError{fmt.Sprintf(format, args...)} }

// unusable describes an answer that reports success and isn't one.
func unusable(x *exchange, err error) error {
	var undecoded *smithy.DeserializationError
	switch {
	case errors.Is(x.fault, errNoAnswer):
		return x.fault
	case x.fault != nil:
		err = x.fault
	case errors.As(err, &undecoded):
		err = undecoded.Err
	}
	return fmt.Errorf("the service's answer can't be used: %w", err)
}

// judgeNetwork judges a request that got no answer.
func (l *Location) judgeNetwork(err error) failure {
	var inURL *url.Error
	if errors.As(err, &inURL) {
		// It would show the whole URL.
		err = inURL.Err
	}
	var certificate *tls.CertificateVerificationError
	var lookup *net.DNSError
	switch {
	case errors.As(err, &certificate):
		return failure{err: fmt.Errorf("the certificate of %s isn't trusted: %w", l.host(), certificate.Err), pace: concurrency.Unknown}
	case errors.As(err, &lookup) && lookup.IsNotFound:
		hint := "check endpoint= and region="
		if !l.spec.PathStyle {
			hint += ", or try path_style=true"
		}
		return failure{err: fmt.Errorf("there is no host %s; %s", lookup.Name, hint), pace: concurrency.Unknown}
	case errors.Is(err, http.ErrSchemeMismatch):
		return failure{err: fmt.Errorf("%s speaks HTTP, not HTTPS; check endpoint=", l.host()), pace: concurrency.Unknown}
	}
	// What ended this connection may have ended the others that are kept, as
	// when a laptop wakes up: tries must not be spent on them.
	l.client.CloseIdleConnections()
	return failure{err: fmt.Errorf("%s can't be reached: %w", l.host(), err), again: true, pace: concurrency.Unknown}
}

// judgeStatus judges an answer that reports an error.
func (l *Location) judgeStatus(x *exchange) failure {
	f := failure{err: l.explain(x), after: retryAfter(x.header, time.Now())}
	switch code := x.document.Code; {
	case isThrottle(x.status, code):
		f.again, f.pace = true, concurrency.Overloaded
	case x.status >= 500, x.status == http.StatusRequestTimeout, mayPass(code):
		f.again = true
	}
	if x.status >= 500 {
		// Behind another connection there may be another machine. B2 says so of
		// its "no tomes available" (mastodon/mastodon issue 30030).
		l.client.CloseIdleConnections()
	}
	return f
}

// mayPass says whether an error may be over when the same is asked again.
func mayPass(code string) bool {
	switch code {
	case "InternalError", "OperationAborted", "ConditionalRequestConflict",
		// What was uploaded isn't what was sent.
		"XAmzContentSHA256Mismatch", "BadDigest", "IncompleteBody":
		return true
	}
	return false
}

// isThrottle says whether a service asks for fewer requests.
func isThrottle(status int, code string) bool {
	switch code {
	case "SlowDown", "ServiceUnavailable", "Throttling", "ThrottlingException", "RequestThrottled", "RequestLimitExceeded",
		"TooManyRequests", "BandwidthLimitExceeded", "RequestTimeout":
		return true
	}
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}

// explain says in a line what an error means and what to do.
func (l *Location) explain(x *exchange) error {
	said, v := said(x), VariablesOf(l.spec)
	if err := l.elsewhere(x, said); err != nil {
		return err
	}
	switch x.document.Code {
	case "NoSuchKey":
		if x.status == http.StatusNotFound {
			return blob.ErrNotFound
		}
	case "NoSuchBucket":
		return finalf("there is no bucket %s at %s; create it, or correct the location (%s)", l.spec.Bucket, l.spec.Endpoint, said)
	case "InvalidAccessKeyId":
		return finalf("the service doesn't know the access key in %s (%s)", v.KeyID, said)
	case "SignatureDoesNotMatch":
		return finalf("the service refuses the signature: %s doesn't belong to %s, or region= is wrong (%s)", v.Secret, v.KeyID, said)
	case "ExpiredToken", "InvalidToken", "TokenRefreshRequired":
		return finalf("the service refuses the session token in %s; set a new one, or none (%s)", v.Token, said)
	case "RequestTimeTooSkewed":
		return finalf("the service refuses requests because this machine's clock is wrong; set it (%s)", said)
	}
	switch {
	case x.status == http.StatusUnauthorized, x.status == http.StatusForbidden:
		return finalf("the access key in %s isn't allowed to do this; it must be able to list the bucket %s, and to read, write and delete in it (%s)",
			v.KeyID, l.spec.Bucket, said)
	case x.status == http.StatusProxyAuthRequired:
		return finalf("the proxy in HTTPS_PROXY or HTTP_PROXY wants a login (%s)", said)
	case x.document.Code == "" && x.status < 500 && x.status != http.StatusTooManyRequests:
		return finalf("%s answers, but not as an S3 service does; check endpoint= (%s)", l.host(), said)
	}
	return fmt.Errorf("the service reports an error: %s", said)
}

// elsewhere returns an error if the answer is that the bucket is in another
// region than the one in the location.
func (l *Location) elsewhere(x *exchange, said string) error {
	region := x.header.Get("X-Amz-Bucket-Region")
	if region == "" {
		region = x.document.Region
	}
	if !isRegion(region) || region == l.spec.Region {
		region = ""
	}
	switch code := x.document.Code; {
	case code == "PermanentRedirect", code == "TemporaryRedirect", code == "Redirect", code == "AuthorizationHeaderMalformed",
		code == "IllegalLocationConstraintException", code == "InvalidRegionName", x.status/100 == 3 && region != "":
	default:
		return nil
	}
	switch {
	case region != "":
		return finalf("the bucket %s is in another region; set region=%s (%s)", l.spec.Bucket, region, said)
	case x.document.Endpoint != "":
		return finalf("the bucket %s is at %s; set region= or endpoint= accordingly (%s)", l.spec.Bucket, printable(x.document.Endpoint), said)
	}
	return finalf("the service wants another region than %s; set region= (%s)", l.spec.Region, said)
}

// isRegion says whether a region that a service names can be one.
func isRegion(region string) bool {
	const longest = 64
	valid := region != "" && len(region) <= longest
	for _, c := range region {
		valid = valid && ('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-')
	}
	return valid
}

// said quotes the service.
func said(x *exchange) string {
	text := x.document.String()
	if text == "" {
		text = http.StatusText(x.status)
	}
	return strconv.Itoa(x.status) + " " + text
}

// maxRetryAfter bounds how long a service can make a request wait.
const maxRetryAfter = 30 * time.Second

// retryAfter returns how long a service asks to wait, which it says in seconds
// or as a time (RFC 9110, section 10.2.3), or 0.
func retryAfter(header http.Header, now time.Time) time.Duration {
	text := header.Get("Retry-After")
	wait := time.Duration(0)
	if seconds, err := strconv.ParseUint(text, 10, 32); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		wait = at.Sub(now)
	}
	return min(max(wait, 0), maxRetryAfter)
}
