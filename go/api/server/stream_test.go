package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/api/route"
	"powercloud.unidatum.com/go/cluster/revocation"
	"powercloud.unidatum.com/go/keys/keystest"
	"powercloud.unidatum.com/go/pki"
)

// revocable is what a node knows of callers, one of whom is revoked at some time.
type revocable struct {
	identify func(*x509.Certificate) (pki.Identity, error)
	one      *tls.Certificate
	revoked  atomic.Bool
	// others is how often somebody else was looked at.
	others atomic.Int64
}

// revoking has a mode know callers so.
func revoking(mode *Mode, one *tls.Certificate) *revocable {
	r := &revocable{identify: mode.Identify, one: one}
	mode.Identify = func(certificate *x509.Certificate) (pki.Identity, error) {
		if !bytes.Equal(certificate.Raw, r.one.Certificate[0]) {
			r.others.Add(1)
		} else if r.revoked.Load() {
			return pki.Identity{}, revocation.ErrRevoked
		}
		return r.identify(certificate)
	}
	return r
}

// heard is what came of a stream.
type heard struct {
	status int
	text   string
	err    error
}

// readLogs reads the log of a server as somebody.
func readLogs(address string, as *tls.Certificate) <-chan heard {
	ended := make(chan heard, 1)
	go func() {
		logs := route.Logs()
		status, answer, err := ask(address, as, nil, logs.Method, logs.Path, []byte("{}"))
		ended <- heard{status, string(answer), err}
	}()
	return ended
}

// soon returns what comes.
func soon[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case came := <-from:
		return came
	case <-time.After(time.Minute):
		t.Fatalf("%s: not in a minute", what)
		panic("unreachable")
	}
}

// TestStreamOfTheRevoked: nothing more is written to whoever reads a stream and was
// revoked.
func TestStreamOfTheRevoked(t *testing.T) {
	c := newCluster(t, keystest.First(t))
	mode := modes(t, c, new(revocation.List))[route.Open]
	admin := c.admin(now())
	known := revoking(mode, admin)
	HandleStream(mode.Handlers, route.Logs(), func(_ context.Context, _ Caller, _ *message.Logs, w io.Writer) error {
		if _, err := io.WriteString(w, "a\n"); err != nil {
			return err
		}
		known.revoked.Store(true)
		_, err := io.WriteString(w, "b\n")
		return err
	})
	v := serveUntil(t, mode, patient(), slog.New(slog.DiscardHandler), plainly)
	got := soon(t, "the end of the stream", readLogs(v.address, admin))
	if !errors.Is(got.err, io.ErrUnexpectedEOF) || got.text != "a\n" {
		t.Errorf("%+v", got)
	}
}

// TestSilentStreamOfTheRevoked: streams in which nothing happens end with the certificate
// of whoever reads them, whose turns are free then. Those of others go on.
func TestSilentStreamOfTheRevoked(t *testing.T) {
	c := newCluster(t, keystest.First(t))
	mode := modes(t, c, new(revocation.List))[route.Open]
	goes, stays := c.admin(now()), c.admin(now())
	known := revoking(mode, goes)
	began, speak := make(chan struct{}), make(chan struct{})
	HandleStream(mode.Handlers, route.Logs(), func(ctx context.Context, _ Caller, _ *message.Logs, w io.Writer) error {
		if _, err := io.WriteString(w, "a\n"); err != nil {
			return err
		}
		began <- struct{}{}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-speak:
		}
		_, err := io.WriteString(w, "b\n")
		return err
	})
	limits := patient()
	limits.Recheck = time.Millisecond
	v := serveUntil(t, mode, limits, slog.New(slog.DiscardHandler), plainly)
	taken := func(want int) func() bool {
		return func() bool {
			v.turns.mu.Lock()
			defer v.turns.mu.Unlock()
			return v.turns.all == want
		}
	}
	other := readLogs(v.address, stays)
	soon(t, "a stream", began)
	var all []<-chan heard
	for range limits.RequestsEach {
		all = append(all, readLogs(v.address, goes))
		soon(t, "a stream", began)
	}
	wait(t, "every turn that one may have", taken(limits.RequestsEach+1))
	known.revoked.Store(true)
	for _, ended := range all {
		if got := soon(t, "the end of a stream", ended); !errors.Is(got.err, io.ErrUnexpectedEOF) || got.text != "a\n" {
			t.Errorf("who was revoked: %+v", got)
		}
	}
	wait(t, "the turns", taken(1))
	looked := known.others.Load()
	wait(t, "several looks at who wasn't", func() bool { return known.others.Load() > looked+5 })
	close(speak)
	if got := soon(t, "the end of a stream", other); got.err != nil || got.text != "a\nb\n" {
		t.Errorf("who wasn't revoked: %+v", got)
	}
}

// TestStreamThatNeverBegan: who is revoked before there is anything to write is told.
func TestStreamThatNeverBegan(t *testing.T) {
	c := newCluster(t, keystest.First(t))
	mode := modes(t, c, new(revocation.List))[route.Open]
	admin := c.admin(now())
	known := revoking(mode, admin)
	HandleStream(mode.Handlers, route.Logs(), func(ctx context.Context, _ Caller, _ *message.Logs, _ io.Writer) error {
		known.revoked.Store(true)
		<-ctx.Done()
		return ctx.Err()
	})
	limits := patient()
	limits.Recheck = time.Millisecond
	v := serveUntil(t, mode, limits, slog.New(slog.DiscardHandler), plainly)
	got := soon(t, "the answer", readLogs(v.address, admin))
	if got.err != nil || got.status != http.StatusForbidden || code(t, []byte(got.text)) != message.CodeDenied {
		t.Errorf("%+v", got)
	}
}
