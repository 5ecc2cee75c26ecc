// Package client asks nodes through their API. It knows a node by its certificate, or
// by the code on its console while the node has none.
package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/api/route"
	"powercloud.unidatum.com/go/cluster/address"
	"powercloud.unidatum.com/go/pki"
)

var (
	// ErrRefused says that the node didn't accept the certificate.
	ErrRefused = errors.New("the node refused the certificate")
	// ErrNodeExpired says that the node's own certificate has expired.
	ErrNodeExpired = errors.New("certificate has expired")
	// ErrNode says that the node isn't the one that was asked for.
	ErrNode = errors.New("it is another node")
	// ErrNotMember says that what answered is no node of this cluster.
	ErrNotMember = errors.New("it isn't a node of this cluster")
)

// Client asks one node.
type Client struct {
	address address.Address
	http    *http.Client
	// proof, unless nil, adds to a request with a body what proves to know a code.
	proof func(*http.Request, []byte) error
	// unused has the one connection of a client that has no other, until it is used.
	unused chan *conn
	// patience is how long a connection may take.
	patience time.Duration
	// met is who the node was at the connection that was made last; nil if none was.
	met atomic.Pointer[pki.Identity]
}

// Peer is a node that is known by its certificate.
type Peer struct {
	// Address is where its API is reached.
	Address address.Address
	// Authority is the cluster's.
	Authority *pki.Authority
	// ID is the node's.
	ID pki.NodeID
	// Expired lets the node's certificate have expired, for its renewal: it tells of the
	// node's key all the same. [Client.Met] tells whether it has.
	Expired bool
	// Patience is how long a connection may take, 10 seconds where it is 0. Where the
	// caller waits for less than that altogether, it never hears what became of the
	// connection.
	Patience time.Duration
}

// dialTimeout is how long a connection may take.
const dialTimeout = 10 * time.Second

// New returns a client for a member of a cluster. certificate is the caller's own, and
// now the clock. Close it after use.
func New(peer Peer, certificate *tls.Certificate, now func() time.Time) *Client {
	c := &Client{address: peer.Address, patience: cmp.Or(peer.Patience, dialTimeout)}
	config := &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{*certificate},
		ServerName:   pki.ServerName(peer.Authority.Cluster(), peer.ID),
		NextProtos:   []string{"http/1.1"},
		// The certificates aren't those of the web; VerifyConnection does it.
		InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			found, err := peer.verify(&state, now())
			if err == nil {
				c.met.Store(&found)
			}
			return err
		},
	}
	c.http = &http.Client{CheckRedirect: noRedirect, Transport: transport(func(ctx context.Context) (*conn, error) {
		return dial(ctx, peer.Address, config, c.patience)
	})}
	return c
}

// Met returns what the node's certificate said at the connection that was made last.
// met is false if there was none.
func (c *Client) Met() (found pki.Identity, met bool) {
	if at := c.met.Load(); at != nil {
		return *at, true
	}
	return pki.Identity{}, false
}

// verify checks that a connection's other end is the node, and returns what its
// certificate says.
func (p Peer) verify(state *tls.ConnectionState, now time.Time) (pki.Identity, error) {
	if len(state.PeerCertificates) != 1 {
		return pki.Identity{}, ErrNotMember
	}
	found, err := p.Authority.Verify(state.PeerCertificates[0], now)
	expired := errors.Is(err, pki.ErrExpired)
	if expired {
		// Whose it is comes first: another node at the address is no reason to renew this
		// one's certificate.
		found, err = p.Authority.IdentifyNode(state.PeerCertificates[0])
	}
	switch {
	case err != nil:
		return pki.Identity{}, fmt.Errorf("%w: %w", ErrNotMember, err)
	case found.Role != pki.RoleNode || found.Node != p.ID:
		return pki.Identity{}, fmt.Errorf("%w: it is %s and not node %s", ErrNode, found, p.ID)
	case expired && !p.Expired:
		return pki.Identity{}, ErrNodeExpired
	}
	return found, nil
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// transport returns one whose connections are made by a function, and that takes
// little memory for what the other end sends.
func transport(connect func(context.Context) (*conn, error)) *http.Transport {
	return &http.Transport{
		DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := connect(ctx)
			if err != nil {
				return nil, err
			}
			return conn, nil
		},
		DisableCompression:     true,
		MaxResponseHeaderBytes: 16 << 10,
		MaxIdleConns:           1,
		IdleConnTimeout:        30 * time.Second,
	}
}

// Close ends the client's connections.
func (c *Client) Close() {
	c.http.CloseIdleConnections()
	select {
	case unused := <-c.unused:
		_ = unused.Close()
	default:
	}
}

// Do asks a node and returns its answer. A request of nil is one without content. If
// the node says that it failed, the error is or wraps a [message.Error].
func Do[Request, Answer any](ctx context.Context, c *Client, call route.Call[Request, Answer], request *Request) (*Answer, error) {
	// The node cuts a request that takes longer; this is for one that doesn't.
	late := fmt.Errorf("the node has not answered within %s", call.Timeout+c.patience)
	ctx, cancel := context.WithTimeoutCause(ctx, call.Timeout+c.patience, late)
	defer cancel()
	body, err := encode(call.Route, request)
	if err != nil {
		return nil, err
	}
	defer clear(body)
	text, err := c.fetch(ctx, call.Route, body)
	switch {
	case err != nil && context.Cause(ctx) == late:
		return nil, late
	case err != nil:
		return nil, err
	}
	answer := new(Answer)
	if err := message.Decode(text, answer, false); err != nil {
		return nil, fmt.Errorf("the node's answer can't be read: %w", err)
	}
	return answer, nil
}

// fetch sends a request and returns the whole answer.
func (c *Client) fetch(ctx context.Context, r route.Route, body []byte) ([]byte, error) {
	response, err := c.send(ctx, r, body)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := readAll(response.Body, r.MaxAnswer)
	if err != nil {
		return nil, fmt.Errorf("read the node's answer: %w", plain(err))
	}
	return text, nil
}

// Read asks a node for text that comes bit by bit, until the caller closes it or ctx is
// done. The node has as long as for any answer to begin it, and then silence for the next
// bit, whenever the caller waits for one; 0 is any time.
func Read[Request any](ctx context.Context, c *Client, call route.Stream[Request], request *Request, silence time.Duration) (io.ReadCloser, error) {
	body, err := encode(call.Route, request)
	if err != nil {
		return nil, err
	}
	late := fmt.Errorf("the node has not answered within %s", call.Timeout+c.patience)
	ctx, cancel := context.WithCancelCause(ctx)
	begin := time.AfterFunc(call.Timeout+c.patience, func() { cancel(late) })
	response, err := c.send(ctx, call.Route, body)
	begin.Stop()
	if err != nil {
		if context.Cause(ctx) == late {
			err = late
		}
		cancel(nil)
		return nil, err
	}
	silent := fmt.Errorf("the node has sent nothing for %s", silence)
	return &stream{response.Body, ctx, cancel, silence, silent}, nil
}

// stream is a response that comes bit by bit.
type stream struct {
	io.ReadCloser
	// ctx is the request's.
	ctx     context.Context
	cancel  context.CancelCauseFunc
	silence time.Duration
	// silent is what the request is cancelled with after that.
	silent error
}

// Read reads what has come, or waits for it. What the caller does between two reads takes
// none of the node's time.
func (s *stream) Read(b []byte) (int, error) {
	if s.silence == 0 {
		return s.ReadCloser.Read(b)
	}
	waiting := time.AfterFunc(s.silence, func() { s.cancel(s.silent) })
	n, err := s.ReadCloser.Read(b)
	waiting.Stop()
	if err != nil && err != io.EOF && context.Cause(s.ctx) == s.silent {
		err = s.silent
	}
	return n, err
}

// Close ends the request.
func (s *stream) Close() error {
	err := s.ReadCloser.Close()
	s.cancel(nil)
	return err
}

func encode[Request any](r route.Route, request *Request) ([]byte, error) {
	if r.MaxRequest == 0 {
		return nil, nil
	}
	if request == nil {
		request = new(Request)
	}
	body, err := json.Marshal(request)
	if err == nil && int64(len(body)) > r.MaxRequest {
		err = fmt.Errorf("the request %q has %d bytes and may have %d", r.Name, len(body), r.MaxRequest)
	}
	return body, err
}

// send sends a request, and returns the response to one that succeeded.
func (c *Client) send(ctx context.Context, r route.Route, body []byte) (*http.Response, error) {
	where := url.URL{Scheme: "https", Host: c.address.String(), Path: r.Path}
	request, err := http.NewRequestWithContext(ctx, r.Method, where.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", "pcctl")
	if r.MaxRequest > 0 {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.proof != nil {
		if err := c.proof(request, body); err != nil {
			return nil, err
		}
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, plain(err)
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	defer response.Body.Close()
	return nil, failure(response)
}

// failure returns the error that a node answered with.
func failure(response *http.Response) error {
	const most = 4 << 10
	text, err := readAll(response.Body, most)
	said := new(message.Error)
	if err != nil || message.Decode(text, said, false) != nil || said.Text == "" {
		return fmt.Errorf("the node answered with HTTP status %d", response.StatusCode)
	}
	// A terminal takes nothing else in there for a command, and a reader for another line.
	said.Text = strings.Join(strings.FieldsFunc(said.Text, func(r rune) bool { return !unicode.IsPrint(r) }), " ")
	return said
}

// readAll reads what has at most so many bytes.
func readAll(r io.Reader, most int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("it is larger than %d bytes", most)
	}
	return text, err
}

// plain returns an error without what Go's HTTP client puts around it, and ErrRefused
// for what TLS says when a certificate isn't accepted.
func plain(err error) error {
	var around *url.Error
	if errors.As(err, &around) {
		err = around.Err
	}
	if refused := refusal(err); refused != nil {
		return refused
	}
	return err
}
