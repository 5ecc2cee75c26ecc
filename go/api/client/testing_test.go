package client

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
	"powercloud.unidatum.com/go/api/route"
	"powercloud.unidatum.com/go/api/server"
	"powercloud.unidatum.com/go/cluster/address"
	"powercloud.unidatum.com/go/cluster/revocation"
	"powercloud.unidatum.com/go/keys/keystest"
	"powercloud.unidatum.com/go/pki"
)

// now is when the tests take place.
func now() time.Time { return time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC) }

func newCA(t testing.TB, c keystest.Cluster) *pki.CA {
	t.Helper()
	ca, err := pki.NewCA(c.Root(t), c.ID)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func newKey(t testing.TB) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// identity is a certificate with its key, and whose it is.
type identity struct {
	*tls.Certificate
	id          pki.NodeID
	fingerprint pki.Fingerprint
}

func withKey(t testing.TB, key ed25519.PrivateKey, certificate *x509.Certificate, err error) identity {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	fingerprint, err := pki.FingerprintOf(key.Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	return identity{&tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: key}, fingerprint.NodeID(), fingerprint}
}

func admin(t testing.TB, ca *pki.CA, at time.Time) identity {
	key := newKey(t)
	certificate, err := ca.IssueAdmin(key.Public().(ed25519.PublicKey), at, rand.Reader)
	return withKey(t, key, certificate, err)
}

func node(t testing.TB, ca *pki.CA, at time.Time) identity {
	key := newKey(t)
	certificate, err := ca.IssueNode(key.Public().(ed25519.PublicKey), at, pki.NodeLifetime, rand.Reader)
	return withKey(t, key, certificate, err)
}

// selfSigned is what a node has that is no member.
func selfSigned(t testing.TB) identity {
	key := newKey(t)
	certificate, err := server.SelfSigned(key, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(certificate.Certificate[0])
	return withKey(t, key, parsed, err)
}

func answers[Request, Answer any](context.Context, server.Caller, *Request) (*Answer, error) {
	return new(Answer), nil
}

// open returns the handlers of a member, which all answer at once.
func open() *server.Handlers {
	h := server.NewHandlers()
	server.Handle(h, route.GetInfo(), answers[message.None, message.Info])
	server.Handle(h, route.GetStatus(), answers[message.None, message.Status])
	server.Handle(h, route.GetMesh(), answers[message.None, message.MeshKey])
	server.Handle(h, route.GetRevocations(), answers[message.None, message.Document])
	server.Handle(h, route.PutMembership(), answers[message.Document, message.Serial])
	server.Handle(h, route.PutRevocations(), answers[message.Document, message.Serial])
	server.Handle(h, route.PutCertificate(), answers[message.Certificate, message.None])
	server.Handle(h, route.Power(), answers[message.Power, message.None])
	server.Handle(h, route.Erase(), answers[message.None, message.None])
	server.Handle(h, route.Ping(), answers[message.Ping, message.Pinged])
	server.HandleStream(h, route.Logs(), func(context.Context, server.Caller, *message.Logs, io.Writer) error { return nil })
	return h
}

// member serves as a node of a cluster does, until the test ends.
func member(t testing.TB, ca *pki.CA, who identity, revoked *revocation.List, handlers *server.Handlers) address.Address {
	return serve(t, &server.Mode{State: route.Open, Certificate: func() (*tls.Certificate, error) { return who.Certificate, nil },
		Identify: func(certificate *x509.Certificate) (pki.Identity, error) {
			found, err := ca.Authority().Verify(certificate, now())
			if err != nil {
				return pki.Identity{}, err
			}
			return found, revoked.Check(found)
		}, Handlers: handlers})
}

func serve(t testing.TB, mode *server.Mode) address.Address {
	t.Helper()
	s, err := server.New(mode, server.DefaultLimits(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	listener := listen(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return at(t, listener)
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener
}

func at(t testing.TB, listener net.Listener) address.Address {
	t.Helper()
	a, err := address.Parse(listener.Addr().String(), address.APIPort)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// odd answers every request with bytes, and then ends the connection if that is said,
// or lets it be.
func odd(t testing.TB, who identity, ask tls.ClientAuthType, text string, end bool) address.Address {
	t.Helper()
	listener := listen(t)
	config := &tls.Config{Certificates: []tls.Certificate{*who.Certificate}, ClientAuth: ask, MinVersion: tls.VersionTLS13}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { conn.Close() })
			go func() {
				secure := tls.Server(conn, config)
				if _, err := secure.Read(make([]byte, 1)); err != nil {
					return
				}
				_, _ = io.WriteString(secure, text)
				if end {
					_ = secure.Close()
				}
				_, _ = io.Copy(io.Discard, secure)
			}()
		}
	}()
	return at(t, listener)
}
