// Package server is the frame of a node's API: HTTP over TLS 1.3, the table of routes,
// who may ask what in which state, and the bounds that keep one caller from taking the
// memory or the turn of another.
package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"powercloud.unidatum.com/go/api/route"
	"powercloud.unidatum.com/go/pki"
)

// Mode is what a server does while its node is in one state.
type Mode struct {
	State route.State
	// Certificate returns the server's own.
	Certificate func() (*tls.Certificate, error)
	// Identify returns who a client is, at every request anew, and now and then in a
	// stream: certificates expire and are revoked while a connection lasts. It is nil in a
	// state in which anyone may ask. It is called by several goroutines at once.
	Identify func(*x509.Certificate) (pki.Identity, error)
	Handlers *Handlers
}

// Limits bound what callers can take up.
type Limits struct {
	// Handshakes and HandshakesEach are how many connections may be without an
	// authenticated caller, in all and from one network.
	Handshakes, HandshakesEach int
	// Connections and ConnectionsEach are how many there may be after that, in all and
	// of one caller, or one network where callers are anyone.
	Connections, ConnectionsEach int
	// Requests and RequestsEach are how many may be answered at a time.
	Requests, RequestsEach int
	// Handshake and Header are how long a TLS handshake and a request's header may take,
	// and Idle how long a connection may be without a request.
	Handshake, Header, Idle time.Duration
	// Pause is how long a caller of a stream may take for a piece of it.
	Pause time.Duration
	// Recheck is how often it is looked whether the caller of a stream may still have it,
	// while there is nothing to write.
	Recheck time.Duration
}

// DefaultLimits are those of a node with 1 GiB of memory.
func DefaultLimits() Limits {
	return Limits{
		Handshakes: 128, HandshakesEach: 16, Connections: 256, ConnectionsEach: 48, Requests: 64, RequestsEach: 16,
		Handshake: 10 * time.Second, Header: 10 * time.Second, Idle: time.Minute, Pause: 30 * time.Second, Recheck: 10 * time.Second,
	}
}

// Server answers for a node. Its state changes while it listens.
type Server struct {
	limits Limits
	log    *slog.Logger
	turns  *turns

	mu   sync.Mutex
	mode *Mode
	open map[*connection]struct{}
}

// connection is one whose handshake is over, as the HTTP server has it.
type connection struct {
	*tls.Conn
	gate *gate
	mode *Mode
	// caller is who is counted for it.
	caller string
	// state is guarded by the server's mutex.
	state http.ConnState
}

// drop ends the connection at once. Close would first say so to the other end, and wait
// for one that doesn't listen.
func (c *connection) drop() { _ = c.NetConn().Close() }

// New returns a server in a mode.
func New(mode *Mode, limits Limits, log *slog.Logger) (*Server, error) {
	s := &Server{limits: limits, log: log, turns: newTurns(limits.Requests, limits.RequestsEach), open: make(map[*connection]struct{})}
	if err := s.SetMode(mode); err != nil {
		return nil, err
	}
	return s, nil
}

// SetMode has the server do something else from now on. Connections of before are
// closed, those at work when they are done with it.
func (s *Server) SetMode(mode *Mode) error {
	if err := mode.Handlers.check(mode.State); err != nil {
		return err
	}
	if anyone := mode.Identify == nil; anyone == (mode.State == route.Open) {
		return errors.New("only in the open state a server knows its callers")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mode = mode
	s.drop(http.StateIdle)
	return nil
}

// drop ends all connections in some states. The caller has the mutex.
func (s *Server) drop(states ...http.ConnState) {
	for c := range s.open {
		if slices.Contains(states, c.state) {
			c.drop()
		}
	}
}

// current returns the mode.
func (s *Server) current() *Mode {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mode
}

// config returns what TLS does in a mode.
func (m *Mode) config() *tls.Config {
	c := &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return m.Certificate()
		},
		NextProtos: []string{"http/1.1"},
		// A ticket would let somebody in whose certificate was revoked since.
		SessionTicketsDisabled: true,
	}
	if m.Identify != nil {
		c.ClientAuth = tls.RequireAnyClientCert
		c.VerifyConnection = func(state tls.ConnectionState) error {
			_, err := m.identify(&state)
			return err
		}
	}
	return c
}

// identify returns who is at the other end of a connection, if that matters.
func (m *Mode) identify(state *tls.ConnectionState) (pki.Identity, error) {
	if m.Identify == nil {
		return pki.Identity{}, nil
	}
	// TLS has checked that the caller has the key of the first one.
	if len(state.PeerCertificates) != 1 {
		return pki.Identity{}, fmt.Errorf("the caller has %d certificates", len(state.PeerCertificates))
	}
	return m.Identify(state.PeerCertificates[0])
}

// Serve answers who connects, until ctx is done or the listener fails. It closes the
// listener, and returns when all is answered, or a short time after.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	gate := newGate(s, listener)
	server := &http.Server{
		Handler:           http.HandlerFunc(s.serve),
		ReadHeaderTimeout: s.limits.Header,
		IdleTimeout:       s.limits.Idle,
		MaxHeaderBytes:    8 << 10,
		ConnState:         func(conn net.Conn, state http.ConnState) { s.track(conn.(*connection), state) },
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, connectionKey{}, conn.(*connection))
		},
		// HTTP/2 would add streams to the connections that are counted.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
		// It would be answered without asking who wants to know.
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		// A request ends with what its server does.
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(gate) }()
	var err error
	select {
	case <-ctx.Done():
		err = ctx.Err()
	case err = <-ended:
		ended <- err
	}
	// Answers that are under way have a moment: that of the request to reboot is one.
	shutdown, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	// Shutdown would wait for connections without a request, and say goodbye to each.
	_ = gate.Close()
	s.dropAll(http.StateNew, http.StateIdle)
	_ = server.Shutdown(shutdown)
	s.dropAll(http.StateNew, http.StateIdle, http.StateActive)
	_ = server.Close()
	<-ended
	gate.wait()
	return err
}

func (s *Server) dropAll(states ...http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(states...)
}

// connectionKey is that of a request's connection in its context.
type connectionKey struct{}

// admit keeps track of a connection whose handshake is over.
func (s *Server) admit(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[c] = struct{}{}
	c.gate.admitted.add(c.NetConn(), c.caller)
}

// track follows a connection to its end.
func (s *Server) track(c *connection, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.state = state
	switch state {
	case http.StateClosed, http.StateHijacked:
		delete(s.open, c)
		c.gate.admitted.remove(c.NetConn())
	case http.StateIdle:
		if c.mode != s.mode {
			c.drop()
			return
		}
		// It had a turn instead.
		c.gate.admitted.add(c.NetConn(), c.caller)
	}
}
