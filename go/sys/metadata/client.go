package metadata

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
)

// client sends requests to a service at one address.
type client struct {
	transport http.RoundTripper
	server    netip.AddrPort
	// limit is how many bytes of user data are wanted.
	limit int
}

// request is what is asked.
type request struct {
	method string
	// host is what the Host header says; the address where it is empty.
	host        string
	path, query string
	header      map[string]string
	// limit is how many bytes of the body are read.
	limit int
}

// statusError is an answer's status that isn't 200.
type statusError int

func (e statusError) Error() string {
	// The text that came with it is the server's, and isn't repeated.
	if text := http.StatusText(int(e)); text != "" {
		return fmt.Sprintf("it answers %d, %s", int(e), text)
	}
	return fmt.Sprintf("it answers %d", int(e))
}

// send sends a request and returns the beginning of the answer's body, at most as
// many bytes as the request's limit, and the answer's headers. With a statusError,
// there are headers as well.
func (c *client) send(ctx context.Context, r request) ([]byte, http.Header, error) {
	to := "http://" + c.server.String() + r.path
	if r.query != "" {
		to += "?" + r.query
	}
	out, err := http.NewRequestWithContext(ctx, r.method, to, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("make a request: %w", err)
	}
	out.Host = r.host
	for name, value := range r.header {
		out.Header.Set(name, value)
	}
	answer, err := c.transport.RoundTrip(out)
	if err != nil {
		return nil, nil, because(ctx, err)
	}
	if answer.StatusCode != http.StatusOK {
		_ = answer.Body.Close() // Nothing of it is needed.
		return nil, answer.Header, statusError(answer.StatusCode)
	}
	// With room for all of it from the beginning, the buffer leaves no copies behind of
	// what may be a secret.
	body := bytes.NewBuffer(make([]byte, 0, r.limit+bytes.MinRead))
	_, err = body.ReadFrom(io.LimitReader(answer.Body, int64(r.limit)))
	_ = answer.Body.Close() // What is left of it isn't wanted.
	if err != nil {
		clear(body.Bytes())
		return nil, nil, fmt.Errorf("read its answer: %w", because(ctx, err))
	}
	return body.Bytes(), answer.Header, nil
}

// What can be wrong with an answer, for people.
var (
	errSlow    = errors.New("it hasn't answered in time")
	errCut     = errors.New("the connection ended before its answer did")
	errGarbage = errors.New("it answers with something that isn't HTTP")
)

// because returns why a request failed. Errors of net/http's can have a piece of the
// answer in them, which may be a secret; those of the network don't.
func because(ctx context.Context, err error) error {
	var network *net.OpError
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return errSlow
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &network):
		return network
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errCut
	}
	return errGarbage
}
