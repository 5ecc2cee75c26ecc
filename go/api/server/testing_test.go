package server

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/api/proof"
	"powercloud.unidatum.com/go/api/route"
	"powercloud.unidatum.com/go/cluster/revocation"
	"powercloud.unidatum.com/go/keys/keystest"
	"powercloud.unidatum.com/go/pki"
)

// now is when the tests take place.
func now() time.Time { return time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC) }

// cluster is one that has certificates to give.
type cluster struct {
	t  testing.TB
	ca *pki.CA
}

func newCluster(t testing.TB, c keystest.Cluster) *cluster {
	t.Helper()
	ca, err := pki.NewCA(c.Root(t), c.ID)
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{t, ca}
}

func newKey(t testing.TB) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// admin and node return what was issued at a time.
func (c *cluster) admin(at time.Time) *tls.Certificate {
	c.t.Helper()
	key := newKey(c.t)
	certificate, err := c.ca.IssueAdmin(key.Public().(ed25519.PublicKey), at, rand.Reader)
	if err != nil {
		c.t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: key}
}

func (c *cluster) node(at time.Time) *tls.Certificate {
	c.t.Helper()
	key := newKey(c.t)
	certificate, err := c.ca.IssueNode(key.Public().(ed25519.PublicKey), at, pki.NodeLifetime, rand.Reader)
	if err != nil {
		c.t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: key}
}

// identify returns what a node's Identify does.
func (c *cluster) identify(revoked *revocation.List) func(*x509.Certificate) (pki.Identity, error) {
	return func(certificate *x509.Certificate) (pki.Identity, error) {
		found, err := c.ca.Authority().Verify(certificate, now())
		if err != nil {
			return pki.Identity{}, err
		}
		return found, revoked.Check(found)
	}
}

// own returns the certificate as a Mode has it.
func own(certificate *tls.Certificate) func() (*tls.Certificate, error) {
	return func() (*tls.Certificate, error) { return certificate, nil }
}

// secretCode is the code of every node that is waiting to be enrolled here.
func secretCode() *proof.Code { return &proof.Code{Secret: [proof.SecretSize]byte{1, 2, 3}} }

// modes returns one for every state, in which every handler answers at once.
func modes(t testing.TB, c *cluster, revoked *revocation.List) map[route.State]*Mode {
	t.Helper()
	blank, locked, open := NewHandlers(), NewHandlers(), NewHandlers()
	knows := func(caller Caller) error {
		if !caller.Proof.Knows(secretCode()) {
			return message.Errorf(message.CodeProof, "no proof")
		}
		return nil
	}
	Handle(blank, route.GetOffer(), func(_ context.Context, caller Caller, _ *message.None) (*message.Offer, error) {
		return new(message.Offer), knows(caller)
	})
	Handle(blank, route.Enroll(), func(_ context.Context, caller Caller, _ *message.Enrollment) (*message.Enrolled, error) {
		return new(message.Enrolled), knows(caller)
	})
	Handle(locked, route.GetLock(), answers[message.None, message.Lock])
	Handle(locked, route.Unlock(), answers[message.Unlock, message.None])
	Handle(open, route.GetInfo(), answers[message.None, message.Info])
	Handle(open, route.GetStatus(), answers[message.None, message.Status])
	Handle(open, route.GetMesh(), answers[message.None, message.MeshKey])
	Handle(open, route.GetRevocations(), answers[message.None, message.Document])
	Handle(open, route.PutMembership(), answers[message.Document, message.Serial])
	Handle(open, route.PutRevocations(), answers[message.Document, message.Serial])
	Handle(open, route.PutCertificate(), answers[message.Certificate, message.None])
	Handle(open, route.Power(), answers[message.Power, message.None])
	Handle(open, route.Erase(), answers[message.None, message.None])
	Handle(open, route.Ping(), answers[message.Ping, message.Pinged])
	HandleStream(open, route.Logs(), func(_ context.Context, _ Caller, _ *message.Logs, w io.Writer) error {
		_, err := io.WriteString(w, "{}\n")
		return err
	})
	self, err := SelfSigned(newKey(t), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return map[route.State]*Mode{
		route.Blank:  {State: route.Blank, Certificate: own(self), Handlers: blank},
		route.Locked: {State: route.Locked, Certificate: own(self), Handlers: locked},
		route.Open:   {State: route.Open, Certificate: own(c.node(now())), Identify: c.identify(revoked), Handlers: open},
	}
}

func answers[Request, Answer any](context.Context, Caller, *Request) (*Answer, error) {
	return new(Answer), nil
}

// start serves in a mode until the test ends.
func start(t testing.TB, mode *Mode, limits Limits) (*Server, string) {
	t.Helper()
	s, err := New(mode, limits, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return s, listener.Addr().String()
}

// dialed returns a transport's way to a connection that there is.
func dialed(conn net.Conn) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) { return conn, nil }
}
