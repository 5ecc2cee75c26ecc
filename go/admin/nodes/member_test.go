package nodes

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/api/route"
	"powercloud.unidatum.com/go/api/server"
	"powercloud.unidatum.com/go/cluster/address"
	"powercloud.unidatum.com/go/cluster/registry"
	"powercloud.unidatum.com/go/pki"
	"powercloud.unidatum.com/go/pki/document"
)

// member is a node that answers, and keeps the newest lists that it was handed.
type member struct {
	registry.Node
	ca *pki.CA

	mu    sync.Mutex
	lists map[document.Kind]*document.Document
}

// startMember serves as a node whose key is made of a byte, until the test ends. logs is
// what it answers when its log is read.
func startMember(t testing.TB, ca *pki.CA, fill byte, logs func(context.Context, *message.Logs, io.Writer) error) *member {
	t.Helper()
	m := &member{Node: entry(t, fill), ca: ca, lists: map[document.Kind]*document.Document{}}
	issued, err := ca.IssueNode(m.Key, now, pki.NodeLifetime, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	own := &tls.Certificate{Certificate: [][]byte{issued.Raw}, PrivateKey: keyOf(fill)}
	api, err := server.New(&server.Mode{State: route.Open, Handlers: m.handlers(logs),
		Certificate: func() (*tls.Certificate, error) { return own, nil },
		Identify:    func(c *x509.Certificate) (pki.Identity, error) { return ca.Authority().Verify(c, now) },
	}, server.DefaultLimits(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at, err := address.Parse(listener.Addr().String(), address.APIPort)
	if err != nil {
		t.Fatal(err)
	}
	m.Address.Set(at, now)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- api.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return m
}

// handlers answer for the member's lists and its log, and for nothing else.
func (m *member) handlers(logs func(context.Context, *message.Logs, io.Writer) error) *server.Handlers {
	h := server.NewHandlers()
	server.Handle(h, route.GetInfo(), no[message.None, message.Info])
	server.Handle(h, route.GetStatus(), no[message.None, message.Status])
	server.Handle(h, route.GetMesh(), no[message.None, message.MeshKey])
	server.Handle(h, route.PutCertificate(), no[message.Certificate, message.None])
	server.Handle(h, route.Power(), no[message.Power, message.None])
	server.Handle(h, route.Erase(), no[message.None, message.None])
	server.Handle(h, route.Ping(), no[message.Ping, message.Pinged])
	server.Handle(h, route.GetRevocations(), func(context.Context, server.Caller, *message.None) (*message.Document, error) {
		if list := m.list(document.Revocations); list != nil {
			return &message.Document{Signed: list.Signed()}, nil
		}
		return new(message.Document), nil
	})
	server.Handle(h, route.PutMembership(), func(_ context.Context, _ server.Caller, d *message.Document) (*message.Serial, error) {
		return m.take(document.Membership, d)
	})
	server.Handle(h, route.PutRevocations(), func(_ context.Context, _ server.Caller, d *message.Document) (*message.Serial, error) {
		return m.take(document.Revocations, d)
	})
	server.HandleStream(h, route.Logs(), func(ctx context.Context, _ server.Caller, asked *message.Logs, w io.Writer) error {
		return logs(ctx, asked, w)
	})
	return h
}

func no[Request, Answer any](context.Context, server.Caller, *Request) (*Answer, error) {
	return nil, errors.New("nobody asks this here")
}

// list returns the list of a kind that the member has, if any.
func (m *member) list(kind document.Kind) *document.Document {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lists[kind]
}

// take takes a list, unless the member has a newer one.
func (m *member) take(kind document.Kind, d *message.Document) (*message.Serial, error) {
	list, err := document.Open(m.ca.Authority(), kind, d.Signed)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if has := m.lists[kind]; has != nil {
		if _, err := document.Newer(has, list); err != nil {
			return nil, message.Errorf(message.CodeOlder, "%v", err)
		}
	}
	m.lists[kind] = list
	return &message.Serial{Serial: list.Serial}, nil
}

// newCaller returns an admin as newAdmin does who can ask members, and what that admin
// is warned of.
func newCaller(t testing.TB, ca *pki.CA, store registry.Objects) (*cluster, *bytes.Buffer) {
	t.Helper()
	c, warnings := newAdmin(t, ca, store), new(bytes.Buffer)
	c.Env.Stderr, c.Env.Rand, c.Env.Now = warnings, rand.Reader, func() time.Time { return now }
	var err error
	if c.certificate, err = c.admin(); err != nil {
		t.Fatal(err)
	}
	return c, warnings
}
