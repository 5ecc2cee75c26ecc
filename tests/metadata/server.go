// Package metadata stands in for the metadata services of clouds in tests. It follows
// what the clouds have published about them, strictly: what they say a request must
// have or mustn't have is demanded. It also fails in the ways in which services do.
package metadata

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"powercloud.unidatum.com/tests/namespace"
)

// A Cloud is one of the services: [AWS], [GoogleCloud] or [Azure].
type Cloud interface {
	http.Handler
	// addresses are where machines in that cloud find it, on port 80.
	addresses() []netip.Addr
}

// port is where all of them listen.
const port = 80

// linkLocal is the address that all of them have.
func linkLocal() netip.Addr { return netip.MustParseAddr("169.254.169.254") }

// Server is a metadata service that runs. Its methods may be called from several
// goroutines at once.
type Server struct {
	cloud     Cloud
	listeners []net.Listener
	closing   chan struct{}

	mu       sync.Mutex
	rules    []*rule
	requests []*http.Request
	answers  []int
}

// rule has a fault committed on the next few requests that match.
type rule struct {
	match Match
	times int // how many more; negative for ever
	fault Fault
}

// Start starts a cloud's service on this host's loopback interface for the test's
// time. [Server.Dial] leads there.
func Start(t testing.TB, cloud Cloud) *Server {
	t.Helper()
	return start(t, cloud, func() ([]net.Listener, error) {
		if err := loopback(); err != nil {
			return nil, err
		}
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		return []net.Listener{l}, err
	})
}

// StartIn starts a cloud's service in a namespace for the test's time, at the
// addresses that it has in the cloud: the namespace's device gets them. A machine
// needs a route there, such as one by a gateway in the namespace.
func StartIn(t testing.TB, n *namespace.Namespace, device string, cloud Cloud) *Server {
	t.Helper()
	for _, address := range cloud.addresses() {
		namespace.Address(t, n, device, netip.PrefixFrom(address, address.BitLen()).String())
	}
	return start(t, cloud, func() (listeners []net.Listener, err error) {
		err = n.Do(func() error {
			for _, address := range cloud.addresses() {
				l, err := net.Listen("tcp", netip.AddrPortFrom(address, port).String())
				if err != nil {
					return err
				}
				listeners = append(listeners, l)
			}
			return nil
		})
		return listeners, err
	})
}

func start(t testing.TB, cloud Cloud, listen func() ([]net.Listener, error)) *Server {
	t.Helper()
	listeners, err := listen()
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{cloud: cloud, listeners: listeners, closing: make(chan struct{})}
	server := &http.Server{
		Handler: s,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connection{}, c)
		},
		ReadHeaderTimeout: time.Minute,
	}
	var serving sync.WaitGroup
	for _, l := range listeners {
		serving.Go(func() {
			if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				t.Errorf("the metadata service ended: %v", err)
			}
		})
	}
	t.Cleanup(func() {
		close(s.closing)
		_ = server.Close()
		serving.Wait()
	})
	return s
}

// connection is the key of a request's connection in its context.
type connection struct{}

// Dial connects to the service, whatever the address: it is for a client's transport,
// in the place of [net.Dialer.DialContext].
func (s *Server) Dial(ctx context.Context, network, _ string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, network, s.listeners[0].Addr().String())
}

// Inject has a fault committed on the next requests that match, so many times, or
// until Heal if times is negative. Of several faults that match, the one that was
// injected first is committed.
func (s *Server) Inject(match Match, times int, fault Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = append(s.rules, &rule{match, times, fault})
}

// Heal ends all faults.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = nil
}

// Requests returns the requests so far, without their bodies.
func (s *Server) Requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*http.Request(nil), s.requests...)
}

// Answers returns the status of each answer so far that the service gave, not a
// fault in its place.
func (s *Server) Answers() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]int(nil), s.answers...)
}

// ServeHTTP answers a request, or commits a fault.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if fault := s.note(r); fault != nil {
		fault(s, w, r)
		return
	}
	s.answer(w, r)
}

// answer has the cloud answer.
func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	noting := &noting{ResponseWriter: w, status: http.StatusOK}
	s.cloud.ServeHTTP(noting, r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = append(s.answers, noting.status)
}

// noting is a ResponseWriter that remembers the status.
type noting struct {
	http.ResponseWriter
	status int
}

func (n *noting) WriteHeader(status int) {
	n.status = status
	n.ResponseWriter.WriteHeader(status)
}

// note remembers a request and returns what fault to commit on it.
func (s *Server) note(r *http.Request) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := r.Clone(context.WithoutCancel(r.Context()))
	seen.Body = http.NoBody
	s.requests = append(s.requests, seen)
	for _, rule := range s.rules {
		if rule.times != 0 && rule.match(r) {
			rule.times--
			return rule.fault
		}
	}
	return nil
}
