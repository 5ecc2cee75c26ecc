package lifecycle

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/api/route"
	"powercloud.unidatum.com/go/api/server"
	"powercloud.unidatum.com/go/node/identity"
	"powercloud.unidatum.com/go/node/supervisor"
	"powercloud.unidatum.com/go/pki"
	"powercloud.unidatum.com/go/pki/document"
)

// open is a member's work. It ends with ctx.
func (r *run) open(ctx context.Context, m *Member) error {
	i, _ := m.Identity.Current()
	o := &opened{run: r, Member: m}
	handlers := server.NewHandlers()
	parts := append([]supervisor.Component{
		{Name: "growth", Run: o.grow},
		{Name: "certificate", Run: o.warn},
	}, r.Member(handlers, m)...)
	o.handle(handlers)
	notice := fmt.Sprintf("PowerCloud node %s (%s) is a member of the cluster %s.\n", i.Name(), i.Self.Node, i.Self.Cluster)
	err := r.serve(ctx, &server.Mode{State: route.Open, Certificate: o.certificate, Identify: o.identify, Handlers: handlers}, notice)
	if err != nil {
		return err
	}
	close(r.opened)
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// It ends with ctx: growth may be done, but whoever warns never is.
		_ = supervisor.New(supervisor.Options{Log: r.Log}, parts...).Run(ctx)
	}()
	err = r.wait(ctx, ended)
	cancel()
	<-ended
	return err
}

// opened is a member at work.
type opened struct {
	*run
	*Member
}

// certificate returns the one that the node has now.
func (o *opened) certificate() (*tls.Certificate, error) {
	i, _ := o.Identity.Current()
	certificate := i.TLS()
	return &certificate, nil
}

// identify returns who a caller is, by the authority and what it has revoked.
func (o *opened) identify(certificate *x509.Certificate) (pki.Identity, error) {
	i, _ := o.Identity.Current()
	return i.Verify(certificate, o.timeAfter(certificate.NotBefore.Add(pki.Allowance)))
}

// time returns the time by which the node's own certificate is judged. It is not before
// its issue: a clock that is behind that is wrong.
func (o *opened) time() time.Time {
	i, _ := o.Identity.Current()
	now := o.Now()
	if now.Before(i.Self.Issued) {
		return i.Self.Issued
	}
	return now
}

// timeAfter returns the time, by somebody whose certificate has that time of issue. A clock
// that nothing says to be right, and that is behind this, is wrong: a machine that loses
// the time while it is off, and finds no time server, keeps no admin away.
//
// Where the clock is right, a certificate of a later time isn't valid yet. It would
// otherwise be good for longer than others, and revoking what was issued until now
// wouldn't revoke it.
func (o *opened) timeAfter(issued time.Time) time.Time {
	i, _ := o.Identity.Current()
	now := o.time()
	// Admins' certificates are issued then at the earliest, whatever the clock of whoever
	// revoked the others.
	if at := i.Revoked.AdminsBefore; now.Before(at) {
		now = at
	}
	if now.Before(issued) && (o.Synced == nil || !o.Synced()) {
		return issued
	}
	return now
}

// grow has the place take all the room that there is.
func (o *opened) grow(ctx context.Context) error {
	if err := o.Place.Grow(ctx); err != nil {
		return err
	}
	return supervisor.ErrDone
}

const (
	// warnWithin is how long before its end a certificate is warned of, and warnEach how
	// often.
	warnWithin = 30 * 24 * time.Hour
	warnEach   = 24 * time.Hour
)

// warn logs once a day that the node's certificate has little time left, or none.
func (o *opened) warn(ctx context.Context) error {
	day := time.NewTicker(warnEach)
	defer day.Stop()
	// Lists come and go, and are no reason to say it again.
	var warned *x509.Certificate
	for {
		i, changed := o.Identity.Current()
		if i.Certificate != warned {
			warned = i.Certificate
			o.warnOf(i)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		case <-day.C:
			warned = nil
		}
	}
}

func (o *opened) warnOf(i *identity.Identity) {
	left := i.Self.Expires.Sub(o.time())
	what := "the node's certificate expires soon"
	switch {
	case left < 0:
		what = "the node's certificate has expired, and neither pcctl nor other nodes accept it"
	case left > warnWithin:
		return
	}
	o.Log.Warn(what+"; an admin renews it with 'pcctl --repo ... node renew'", "expires", i.Self.Expires.UTC().Format(time.RFC3339))
}

// handle adds what this package answers.
func (o *opened) handle(h *server.Handlers) {
	server.Handle(h, route.GetMesh(), func(context.Context, server.Caller, *message.None) (*message.MeshKey, error) {
		i, _ := o.Identity.Current()
		return &message.MeshKey{Key: i.MeshPublic()}, nil
	})
	server.Handle(h, route.GetRevocations(), func(context.Context, server.Caller, *message.None) (*message.Document, error) {
		i, _ := o.Identity.Current()
		if i.Revocations == nil {
			return new(message.Document), nil
		}
		return &message.Document{Signed: i.Revocations.Signed()}, nil
	})
	server.Handle(h, route.PutMembership(), func(_ context.Context, _ server.Caller, d *message.Document) (*message.Serial, error) {
		_, err := o.Identity.ReplaceMembership(d.Signed)
		i, _ := o.Identity.Current()
		return serial(i.Membership, err)
	})
	server.Handle(h, route.PutRevocations(), func(_ context.Context, _ server.Caller, d *message.Document) (*message.Serial, error) {
		_, err := o.Identity.ReplaceRevocations(d.Signed)
		i, _ := o.Identity.Current()
		return serial(i.Revocations, err)
	})
	server.Handle(h, route.PutCertificate(), o.renew)
	server.Handle(h, route.Power(), func(_ context.Context, caller server.Caller, p *message.Power) (*message.None, error) {
		if p.Action != message.Reboot && p.Action != message.PowerOff {
			return nil, message.Errorf("", "a node can reboot or power off, and not %q", p.Action)
		}
		o.Log.Info("an admin ends the machine's run", "action", p.Action, "from", caller.Address)
		return new(message.None), o.Power(p.Action)
	})
	server.Handle(h, route.Erase(), func(_ context.Context, caller server.Caller, _ *message.None) (*message.None, error) {
		o.Log.Warn("an admin erases the node", "from", caller.Address)
		if err := o.Place.Erase(); err != nil {
			return nil, fmt.Errorf("erase the node: %w", err)
		}
		return new(message.None), o.Power(message.PowerOff)
	})
}

// renew takes a new certificate. From its answer on the node shows that, and after a
// restart too.
func (o *opened) renew(_ context.Context, caller server.Caller, c *message.Certificate) (*message.None, error) {
	certificate, err := x509.ParseCertificate(c.Certificate)
	if err != nil {
		return nil, message.Errorf("", "the certificate can't be read: %v", err)
	}
	renewed, err := o.Identity.ReplaceCertificate(certificate, o.timeAfter(caller.Identity.Issued))
	if errors.Is(err, document.ErrOlder) {
		return nil, message.Errorf(message.CodeOlder, "%v", err)
	}
	if err != nil {
		return nil, err
	}
	if renewed {
		o.Log.Info("an admin has renewed the node's certificate", "expires", certificate.NotAfter.UTC().Format(time.RFC3339), "from", caller.Address)
	}
	return new(message.None), nil
}

// serial returns the serial of a document that was to be replaced.
func serial(d *document.Document, err error) (*message.Serial, error) {
	switch {
	case errors.Is(err, document.ErrOlder), errors.Is(err, identity.ErrRevokesLess):
		return nil, message.Errorf(message.CodeOlder, "%v", err)
	case err != nil:
		return nil, err
	case d == nil:
		return new(message.Serial), nil
	}
	return &message.Serial{Serial: d.Serial}, nil
}
