// Package metadata reads a machine's user data from the metadata service of the cloud
// that it runs in: AWS, Google Cloud or Azure.
//
// The services are HTTP servers at an address of the link, without encryption. That
// they answer at all is no proof of anything, and neither is what they say: what is
// read here is for the caller to check. It may be secret, and is nobody else's
// business: requests never go through a proxy, whatever the environment says, and no
// redirect is followed.
//
// The protocols are one request each, or two; the modules that the clouds have for
// them (aws-sdk-go-v2/feature/ec2/imds, cloud.google.com/go/compute/metadata) read
// answers of any size, heed the environment, and try in ways of their own. Where the
// requests are made, the cloud's description of its protocol is named.
package metadata

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"
)

const (
	// tries is how often a service is asked. That of a machine that has just started
	// may need a moment.
	tries = 5
	// firstPause is the pause after the first try; it doubles from one to the next,
	// so that there are 15 s in all.
	firstPause = time.Second
	// dialTimeout is how long a connection may take, and answerTimeout how long all
	// that is asked at one address in one try.
	dialTimeout   = 2 * time.Second
	answerTimeout = 5 * time.Second
	// maxHeader is how many bytes an answer's headers may have.
	maxHeader = 16 << 10
	port      = 80
)

var (
	// ErrNone says that the machine has no user data.
	ErrNone = errors.New("the machine has no user data")
	// ErrNotAnswering says that the metadata service didn't answer as it should in
	// any of the tries.
	ErrNotAnswering = errors.New("metadata service not answering")
	// errMissing says that there is no user data yet: it may appear later.
	errMissing = fmt.Errorf("it has none yet: %w", ErrNone)
)

// A Service is the metadata service of one cloud. [AWS], [GoogleCloud] and [Azure]
// return those that there are.
type Service struct {
	name string
	// addresses are where it is, the preferred one first.
	addresses []netip.Addr
	// userData asks it once, at one address.
	userData func(ctx context.Context, c *client) ([]byte, error)
}

// String returns the cloud's name for people.
func (s Service) String() string { return s.name }

// linkLocal is the address that all services have.
func linkLocal() netip.Addr { return netip.AddrFrom4([4]byte{169, 254, 169, 254}) }

// Reader reads user data.
type Reader struct {
	// Limit is how many bytes are read at most; the rest is left out.
	Limit int
	// Log is told about every try that failed.
	Log *slog.Logger
	// Dial connects to a service's address; a [net.Dialer] when nil.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// After waits; [time.After] when nil.
	After func(time.Duration) <-chan time.Time

	// timeout is answerTimeout when 0.
	timeout time.Duration
}

// UserData returns the machine's user data, which is never empty: the error is
// ErrNone where there is none. A service that doesn't answer as it should is asked
// five times, within a minute and a half at most; the error is then ErrNotAnswering.
func (r *Reader) UserData(ctx context.Context, s Service) ([]byte, error) {
	after := r.After
	if after == nil {
		after = time.After
	}
	pause := firstPause
	for try := 1; ; try++ {
		data, err := r.try(ctx, s)
		switch {
		case err == nil:
			return data, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, ErrNone) && (try == tries || !errors.Is(err, errMissing)):
			return nil, ErrNone
		case errors.Is(err, errMissing):
			r.Log.Info("no user data yet", "cloud", s.name, "try", try, "of", tries)
		default:
			r.Log.Warn(ErrNotAnswering.Error(), "cloud", s.name, "try", try, "of", tries, "err", err)
		}
		if try == tries {
			return nil, fmt.Errorf("%w in %d tries: %w", ErrNotAnswering, tries, err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-after(pause):
		}
		pause *= 2
	}
}

// try asks the service once, at each of its addresses until one answers.
func (r *Reader) try(ctx context.Context, s Service) ([]byte, error) {
	var failure error
	for _, address := range s.addresses {
		data, err := r.ask(ctx, s, address)
		if err == nil || errors.Is(err, ErrNone) || ctx.Err() != nil {
			return data, err
		}
		err = fmt.Errorf("ask %s: %w", address, err)
		if failure != nil {
			err = fmt.Errorf("%w; %w", failure, err)
		}
		failure = err
	}
	return nil, failure
}

// ask asks the service at one of its addresses.
func (r *Reader) ask(ctx context.Context, s Service, address netip.Addr) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(r.timeout, answerTimeout))
	defer cancel()
	dial := r.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	// Without a Proxy there is none. A Transport follows no redirects: an http.Client
	// would. With one connection a request, it doesn't repeat any by itself.
	transport := &http.Transport{
		DialContext: dial, DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHeader,
	}
	data, err := s.userData(ctx, &client{transport: transport, server: netip.AddrPortFrom(address, port), limit: r.Limit})
	if err == nil && len(data) == 0 {
		return nil, ErrNone
	}
	return data, err
}
