package nodes

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v3"

	"powercloud.unidatum.com/go/admin/command"
	"powercloud.unidatum.com/go/admin/configuration"
	"powercloud.unidatum.com/go/api/client"
	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/api/proof"
	"powercloud.unidatum.com/go/api/route"
	"powercloud.unidatum.com/go/cluster/address"
	"powercloud.unidatum.com/go/cluster/meshkey"
	"powercloud.unidatum.com/go/cluster/nodename"
	"powercloud.unidatum.com/go/cluster/registry"
	"powercloud.unidatum.com/go/cluster/volumekey"
	"powercloud.unidatum.com/go/pki"
)

func (g *group) enrollCommand() *cli.Command {
	return &cli.Command{
		Name:      "enroll",
		Usage:     "Make a new node a member of the cluster",
		UsageText: "pcctl --repo LOC,... node enroll [--json] HOST[:PORT] CODE NAME",
		Description: `Joins a new node to the cluster, with the enrollment code that its console
shows. The node gets a certificate and the key of its encrypted state volume. It
is recorded in the cluster's registry and in nodes.json, and a new membership
list is published to every node. If this machine has no admin certificate, it
gets one.

Port 7443 is used if no other is given. The node's mesh endpoint becomes port
51820 of the same host, unless that is localhost.

If the connection breaks off, run the same command again.` + changeJSON,
		Flags:  []cli.Flag{command.JSONFlag()},
		Action: g.telling(g.enroll),
	}
}

// invitation is what enroll was asked for.
type invitation struct {
	address address.Address
	code    proof.Code
	name    string
}

func parseInvitation(cmd *cli.Command) (*invitation, error) {
	args, err := command.Args(cmd, 3, 3)
	if err != nil {
		return nil, err
	}
	i := &invitation{name: args[2]}
	if i.address, err = address.Parse(args[0], address.APIPort); err != nil {
		return nil, command.Usagef("%v", err)
	}
	if i.code, err = proof.ParseCode(args[1]); err != nil {
		return nil, command.Usagef("the enrollment %v", err)
	}
	if err := nodename.Check(i.name); err != nil {
		return nil, command.Usagef("%v", err)
	}
	return i, nil
}

func (g *group) enroll(ctx context.Context, cmd *cli.Command) error {
	i, err := parseInvitation(cmd)
	if err != nil {
		return err
	}
	defer i.code.Wipe()
	// Before the passphrase is asked for.
	if _, err := g.nodeLifetime(); err != nil {
		return err
	}
	if g.Env.ConfigDir == "" {
		return configuration.ErrNone
	}
	offer, err := offered(ctx, i)
	if err != nil && !errors.Is(err, client.ErrMember) {
		return err
	}
	c, err := g.unlock(ctx, cmd)
	if err != nil {
		return err
	}
	defer c.leave(ctx)
	// Before there is anything to undo.
	if err := c.certify(ctx); err != nil {
		return err
	}
	if offer == nil {
		return c.resume(ctx, i)
	}
	n, err := c.admit(ctx, i, offer)
	if err != nil {
		return err
	}
	answered, err := c.introduce(ctx, i, n)
	if err != nil {
		return err
	}
	return c.enrolled(ctx, i, n.ID, answered)
}

// offered asks what node is to be enrolled.
func offered(ctx context.Context, i *invitation) (*message.Offer, error) {
	offer, err := ask(ctx, i, route.GetOffer(), new(message.None))
	if err != nil {
		return nil, err
	}
	if len(offer.Key) != ed25519.PublicKeySize {
		return nil, errors.New("the node's key is none")
	}
	// TLS has compared the key that it has used; this one gets the certificate.
	fingerprint, err := pki.FingerprintOf(ed25519.PublicKey(offer.Key))
	if err != nil || fingerprint != i.code.Fingerprint {
		return nil, errMismatch
	}
	return offer, nil
}

// errMismatch says that a node isn't the one whose console showed the code.
var errMismatch = errors.New("node key does not match the enrollment code (wrong code or interception)")

const (
	// busyTries is how often a node is asked that is busy, and busyPause how long it has
	// between.
	busyTries = 5
	busyPause = time.Second
)

// ask asks a node that is known by its code, and again while it is busy.
func ask[Request, Answer any](ctx context.Context, i *invitation, call route.Call[Request, Answer], request *Request) (*Answer, error) {
	return patiently(ctx, func() (*Answer, error) { return askOnce(ctx, i, call, request) })
}

// patiently asks a node, and again while it is busy.
func patiently[Answer any](ctx context.Context, once func() (*Answer, error)) (*Answer, error) {
	for try := 1; ; try++ {
		answer, err := once()
		if try == busyTries || !message.HasCode(err, message.CodeBusy) {
			return answer, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(busyPause):
		}
	}
}

func askOnce[Request, Answer any](ctx context.Context, i *invitation, call route.Call[Request, Answer], request *Request) (*Answer, error) {
	node, err := client.Pinned(ctx, i.address, i.code.Fingerprint, &i.code)
	if errors.Is(err, client.ErrFingerprint) {
		return nil, errMismatch
	}
	if err != nil {
		return nil, err
	}
	defer node.Close()
	return client.Do(ctx, node, call, request)
}

// admit enters the node into the registry, before it gets its key: what fails after
// that can be done again.
func (c *cluster) admit(ctx context.Context, i *invitation, offer *message.Offer) (*registry.Node, error) {
	entry, err := c.newNode(i.name, ed25519.PublicKey(offer.Key))
	if err != nil {
		return nil, err
	}
	if err := c.vacant(ctx, i.name, entry.ID); err != nil {
		return nil, err
	}
	err = c.update(ctx, func(r *registry.Registry) error { return enter(r, entry, i.address, c.Env.Now()) })
	if err != nil {
		return nil, err
	}
	return c.registry.Find(entry.ID.String())
}

// vacant returns an error if a node of that name is a member, which the registry doesn't
// know, as whoever enrolled it never heard so.
func (c *cluster) vacant(ctx context.Context, name string, id pki.NodeID) error {
	ctx, cancel := context.WithTimeout(ctx, statusPatience)
	defer cancel()
	for _, n := range c.registry.Names() {
		if n.Name != name || n.ID == id || n.Confirmed.Value || n.Address.Value.IsZero() {
			continue
		}
		node := c.client(n.Address.Value, n.ID)
		_, err := client.Do(ctx, node, route.GetMesh(), nil)
		node.Close()
		if err == nil {
			return alreadyEnrolled(name)
		}
	}
	return nil
}

// enter enters a node, unless an earlier try has.
func enter(r *registry.Registry, entry registry.Node, at address.Address, now time.Time) error {
	for _, n := range r.Names() {
		same := n.ID == entry.ID
		switch {
		case same && n.Name != entry.Name:
			return fmt.Errorf("an earlier try has entered the node as %q; enroll it under that name, or run 'pcctl node rm %s', restart the node, and enroll it with its new code",
				n.Name, n.Name)
		case !same && n.Name == entry.Name && n.Confirmed.Value:
			return alreadyEnrolled(n.Name)
		case !same && n.Name == entry.Name && now.Sub(n.Enrolled) < enrolling:
			return fmt.Errorf("a node named %q is just being enrolled; if that has failed, remove it first with 'pcctl node rm %s'", n.Name, n.Name)
		case !same && n.Name == entry.Name:
			// It isn't known to have got its identity, and doesn't answer as a member: its
			// first key is gone with its power.
			r.Remove(n.ID)
			r.Revocations++
		}
	}
	if _, err := r.Find(entry.ID.String()); err != nil {
		if err := r.Add(entry); err != nil {
			return err
		}
	}
	n, err := r.Find(entry.ID.String())
	if err != nil {
		return err
	}
	if !at.IsZero() {
		n.SetAddress(at, now)
	}
	return nil
}

// enrolling is for how long a node that isn't confirmed counts as one that another admin is
// enrolling: longer than the node has for its answer, and pcctl's for what comes before.
const enrolling = 5 * time.Minute

func alreadyEnrolled(name string) error {
	return fmt.Errorf("a node named %q is already enrolled", name)
}

// introduce gives the node its identity. answered reports whether the node has said that
// it took it; if not, and there is no error, it is a member of some cluster by now.
func (c *cluster) introduce(ctx context.Context, i *invitation, n *registry.Node) (answered bool, err error) {
	certificate, err := c.issueNode(n.Key, c.Env.Now())
	if err != nil {
		return false, err
	}
	request := &message.Enrollment{Name: n.Name, Authority: c.ca.Authority().Certificate().Raw, Certificate: certificate.Raw, Volume: n.Volume}
	defer request.Wipe()
	key, err := volumekey.Derive(c.objects.Repository.Root, n.Volume)
	if err != nil {
		return false, err
	}
	defer clear(key[:])
	request.VolumeKey = message.Key(key)
	_, err = ask(ctx, i, route.Enroll(), request)
	var said *message.Error
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, client.ErrMember), message.HasCode(err, message.CodeEnrolled), message.HasCode(err, message.CodeState):
		return false, nil
	case errors.As(err, &said), errors.Is(err, errMismatch):
		return false, err
	}
	return false, unknown(err)
}

func unknown(err error) error {
	return fmt.Errorf("%w; whether the node is enrolled isn't known: run the command again", err)
}

// resume goes on with a node that was a member when it was asked: an earlier try may
// have made it one, whose end was cut off.
func (c *cluster) resume(ctx context.Context, i *invitation) error {
	n, err := c.registry.Find(i.code.Fingerprint.NodeID().String())
	if err != nil {
		return client.ErrMember
	}
	if n.Name != i.name {
		return fmt.Errorf("%w, as %q of this one", client.ErrMember, n.Name)
	}
	if n.Confirmed.Value {
		node := c.client(i.address, n.ID)
		defer node.Close()
		info, err := client.Do(ctx, node, route.GetInfo(), nil)
		if err != nil || info.Membership > 0 {
			return client.ErrMember
		}
		// It never got a list: that is the last of what an enrollment does.
	}
	return c.enrolled(ctx, i, n.ID, false)
}

// enrolled does what is left to do once a node has its identity. answered reports
// whether it has said so: if not, it must show it.
func (c *cluster) enrolled(ctx context.Context, i *invitation, id pki.NodeID, answered bool) error {
	mesh, missing := c.meshKey(ctx, i.address, id)
	switch {
	case missing == nil || answered:
	case errors.Is(missing, client.ErrNotMember), errors.Is(missing, client.ErrRefused), errors.Is(missing, client.ErrNode):
		return client.ErrMember
	default:
		return unknown(missing)
	}
	list, err := c.number(ctx, memberships(), 0, func(r *registry.Registry) error {
		n, err := r.Find(id.String())
		if err != nil {
			return err
		}
		n.SetAddress(i.address, c.Env.Now())
		if missing == nil {
			n.MeshKey.Set(mesh, c.Env.Now())
		}
		n.Confirmed.Set(true, c.Env.Now())
		return nil
	})
	if errors.Is(err, registry.ErrUnknown) {
		return c.displaced(ctx, i, id, answered)
	}
	if err != nil {
		return err
	}
	n, err := c.registry.Find(id.String())
	if errors.Is(err, registry.ErrUnknown) {
		return c.displaced(ctx, i, id, answered)
	}
	if err != nil {
		return err
	}
	if err := c.remember(n); err != nil {
		return err
	}
	c.about(n)
	if err := c.say("enrolled node %s (%s) at %s\n", n.Name, n.ID, n.Address.Value); err != nil {
		return err
	}
	if missing != nil {
		c.Warn("node enrolled, but its mesh key is unknown (run 'pcctl mesh sync' later): %v", missing)
	}
	if err := c.spreadAll(ctx, list); err != nil {
		return err
	}
	for _, other := range c.registry.Names() {
		if other.Name == i.name && other.ID != id {
			c.Warn("another admin has enrolled node %s as %q at the same moment; remove one of them with 'pcctl node rm', by its ID", other.ID, other.Name)
		}
	}
	return nil
}

func (c *cluster) meshKey(ctx context.Context, at address.Address, id pki.NodeID) (meshkey.Public, error) {
	node := c.client(at, id)
	defer node.Close()
	mesh, err := client.Do(ctx, node, route.GetMesh(), nil)
	if err != nil {
		return meshkey.Public{}, err
	}
	return mesh.Key, nil
}

// displaced ends the enrollment of a node whose entry is gone: another admin has removed
// it, or has taken it for one that never came and given its name to another. What this
// pcctl has enrolled it erases, so that the node can be enrolled again.
func (c *cluster) displaced(ctx context.Context, i *invitation, id pki.NodeID, answered bool) error {
	what := "it was not erased: set the machine up afresh"
	if answered {
		err := c.erase(ctx, i.address, id)
		if err == nil {
			return fmt.Errorf("another admin has removed node %s meanwhile, or enrolled another as %q; it was erased: start it, and enroll it with its new code", id, i.name)
		}
		what = fmt.Sprintf("it could not be erased (%v): set the machine up afresh", err)
	}
	return fmt.Errorf("another admin has removed node %s meanwhile, or enrolled another as %q; %s", id, i.name, what)
}
