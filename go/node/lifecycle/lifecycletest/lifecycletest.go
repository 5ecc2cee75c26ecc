// Package lifecycletest runs nodes in the process of a test.
package lifecycletest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/api/route"
	"powercloud.unidatum.com/go/api/server"
	"powercloud.unidatum.com/go/cluster/joinbundle"
	"powercloud.unidatum.com/go/node/join"
	"powercloud.unidatum.com/go/node/lifecycle"
	"powercloud.unidatum.com/go/node/state"
	"powercloud.unidatum.com/go/node/supervisor"
)

// Node is a node that runs.
type Node struct {
	// Address is HOST:PORT of its API.
	Address string
	// Power has what an admin asked of the machine, as message.Power has it.
	Power chan string
	// Log is what it has logged.
	Log *Text

	t     testing.TB
	life  *lifecycle.Node
	stop  context.CancelFunc
	ended chan struct{}
	err   error
}

// Start runs a node whose state is at a place, on a free port of this machine. change,
// unless nil, changes what it works with. It ends with the test.
func Start(t testing.TB, place state.Place, change func(*lifecycle.Config)) *Node {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &Node{t: t, Address: listener.Addr().String(), Power: make(chan string, 10), Log: new(Text), ended: make(chan struct{})}
	config := lifecycle.Config{
		Version: "dev",
		Place:   func(context.Context) (state.Place, error) { return place, nil },
		Bundle:  func(context.Context, join.Check) (*joinbundle.Bundle, error) { return nil, join.ErrNone },
		Listen:  listenAgain(listener),
		Limits:  server.DefaultLimits(),
		Member:  Member,
		Power:   func(action string) error { n.Power <- action; return nil },
		Random:  rand.Reader,
		Now:     time.Now,
		Log:     slog.New(slog.NewTextHandler(n.Log, nil)),
	}
	if change != nil {
		change(&config)
	}
	n.life = lifecycle.New(config)
	ctx, stop := context.WithCancel(context.Background())
	n.stop = stop
	go func() {
		defer close(n.ended)
		n.err = n.life.Run(ctx)
	}()
	t.Cleanup(func() {
		_ = n.Stop()
		_ = listener.Close()
	})
	return n
}

// listenAgain returns a listener the first time, and another one at its address each time
// after that.
func listenAgain(first net.Listener) func(context.Context) (net.Listener, error) {
	next := first
	return func(ctx context.Context) (net.Listener, error) {
		if listener := next; listener != nil {
			next = nil
			return listener, nil
		}
		return new(net.ListenConfig).Listen(ctx, "tcp", first.Addr().String())
	}
}

// Stop ends the node's run, and returns what it ended with.
func (n *Node) Stop() error {
	n.stop()
	return n.Ended()
}

// Ended waits until the node's run has ended, and returns what with.
func (n *Node) Ended() error {
	<-n.ended
	return n.err
}

// Shows waits until the console shows something, and returns what its first group has,
// or all of it if it has none.
func (n *Node) Shows(pattern string) string {
	n.t.Helper()
	want := regexp.MustCompile(pattern)
	for {
		notice, changed := n.life.Notice()
		if found := want.FindStringSubmatch(notice.Text); found != nil {
			return found[len(found)-1]
		}
		select {
		case <-changed:
		case <-n.ended:
			if last, _ := n.life.Notice(); last != notice {
				continue
			}
			n.t.Fatalf("the node ended with %v and its console shows %q", n.err, notice.Text)
		}
	}
}

// EnrollmentCode waits for the enrollment code.
func (n *Node) EnrollmentCode() string { return n.Shows(`enrollment code: (\S+)`) }

// UnlockCode waits for the unlock code.
func (n *Node) UnlockCode() string { return n.Shows(`unlock code: (\S+)`) }

// IsMember waits until the node is open.
func (n *Node) IsMember() string { return n.Shows(`is a member of the cluster`) }

// Member answers what package lifecycle leaves to its caller.
func Member(h *server.Handlers, m *lifecycle.Member) []supervisor.Component {
	server.Handle(h, route.GetInfo(), func(context.Context, server.Caller, *message.None) (*message.Info, error) {
		i, _ := m.Identity.Current()
		info := &message.Info{Name: i.Name(), ID: i.Self.Node, Cluster: i.Self.Cluster, CertificateExpires: i.Self.Expires}
		if i.Membership != nil {
			info.Membership = i.Membership.Serial
		}
		if i.Revocations != nil {
			info.Revocations = i.Revocations.Serial
		}
		return info, nil
	})
	server.Handle(h, route.GetStatus(), func(context.Context, server.Caller, *message.None) (*message.Status, error) {
		i, _ := m.Identity.Current()
		return &message.Status{Name: i.Name()}, nil
	})
	server.Handle(h, route.Ping(), func(context.Context, server.Caller, *message.Ping) (*message.Pinged, error) {
		return nil, errors.New("this node pings nobody")
	})
	server.HandleStream(h, route.Logs(), func(context.Context, server.Caller, *message.Logs, io.Writer) error {
		return errors.New("this node keeps no log")
	})
	return nil
}

// Text is what was written, for several goroutines.
type Text struct {
	mu      sync.Mutex
	b       bytes.Buffer
	changed chan struct{}
}

// Write adds to the text.
func (x *Text) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.changed != nil {
		close(x.changed)
		x.changed = nil
	}
	return x.b.Write(p)
}

// String returns the text.
func (x *Text) String() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.b.String()
}

// Await waits until the text has another in it.
func (x *Text) Await(part string) {
	for {
		x.mu.Lock()
		if strings.Contains(x.b.String(), part) {
			x.mu.Unlock()
			return
		}
		if x.changed == nil {
			x.changed = make(chan struct{})
		}
		changed := x.changed
		x.mu.Unlock()
		<-changed
	}
}
