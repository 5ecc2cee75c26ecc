package daemon

import (
	"context"
	"net"
	"net/netip"

	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/api/route"
	"powercloud.unidatum.com/go/api/server"
	"powercloud.unidatum.com/go/cluster/joinbundle"
	"powercloud.unidatum.com/go/node/health"
	"powercloud.unidatum.com/go/node/join"
	"powercloud.unidatum.com/go/node/lifecycle"
	"powercloud.unidatum.com/go/node/network"
	"powercloud.unidatum.com/go/node/reach"
	"powercloud.unidatum.com/go/node/supervisor"
	"powercloud.unidatum.com/go/pki/document"
)

// bundle returns what looks for a join bundle. A pcd that is an ordinary program has
// none: what firmware or a cloud hands over is the machine's.
func (c Config) bundle(state func() (network.State, <-chan struct{})) func(context.Context, join.Check) (*joinbundle.Bundle, error) {
	return func(ctx context.Context, check join.Check) (*joinbundle.Bundle, error) {
		if state == nil || c.State != "" {
			return nil, join.ErrNone
		}
		return join.Find(ctx, join.Machine{Network: state, Log: c.Log}.Sources(), check, c.Log)
	}
}

// protection says how a state volume is protected.
const protection = "authenticated: AES-256-XTS with HMAC-SHA256 per sector (dm-integrity)"

// member adds what a member answers about itself, and returns what finds it out.
func (c Config) member(h *server.Handlers, m *lifecycle.Member) []supervisor.Component {
	facts := health.New(health.Config{
		Version: c.Version,
		Identity: func() (health.Identity, error) {
			i, _ := m.Identity.Current()
			return health.Identity{Name: i.Name(), ID: i.Self.Node, Cluster: i.Self.Cluster, Authority: i.Authority.Fingerprint(),
				CertificateExpires: i.Self.Expires}, nil
		},
		State: func() (message.State, error) { return c.place(m) },
		Membership: func() uint64 {
			i, _ := m.Identity.Current()
			return serial(i.Membership)
		},
		Revocations: func() uint64 {
			i, _ := m.Identity.Current()
			return serial(i.Revocations)
		},
	})
	server.Handle(h, route.GetInfo(), func(context.Context, server.Caller, *message.None) (*message.Info, error) {
		info, err := facts.Info()
		c.incomplete(err)
		return &info, nil
	})
	server.Handle(h, route.GetStatus(), func(context.Context, server.Caller, *message.None) (*message.Status, error) {
		status, err := facts.Status()
		c.incomplete(err)
		return &status, nil
	})
	server.Handle(h, route.Ping(), func(ctx context.Context, _ server.Caller, p *message.Ping) (*message.Pinged, error) {
		// As pcd itself looks names up.
		lookup := func(ctx context.Context, name string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
		}
		pinged, err := reach.Prober{Lookup: lookup}.Ping(ctx, *p)
		return &pinged, err
	})
	parts := []supervisor.Component{{Name: "health", Run: facts.Run}}
	if part, err := c.keepLog(h, m); err != nil {
		c.Log.Warn("the node's log isn't kept", "err", err)
	} else {
		parts = append(parts, part)
	}
	return parts
}

// incomplete logs what couldn't be found out: a node that has lost a part of itself
// can still be looked at.
func (c Config) incomplete(err error) {
	if err != nil {
		c.Log.Warn("the node can't say everything of itself", "err", err)
	}
}

func serial(d *document.Document) uint64 {
	if d == nil {
		return 0
	}
	return d.Serial
}

// place says where a member keeps its state.
func (c Config) place(m *lifecycle.Member) (message.State, error) {
	space, err := m.Place.Space()
	if err != nil {
		return message.State{Kind: message.StateEncrypted, Protection: protection}, err
	}
	switch {
	case c.State != "":
		return message.State{Kind: message.StateFolder}, nil
	case !space.Encrypted:
		return message.State{Kind: message.StateRAM}, nil
	}
	s := message.State{Kind: message.StateEncrypted, Size: space.Size, Free: space.Free, Protection: protection}
	if space.Filled < space.Size {
		s.Filling = &message.Filling{Filled: space.Filled, Total: space.Size}
	}
	return s, nil
}
