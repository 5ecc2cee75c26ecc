package nodes

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v3"

	"powercloud.unidatum.com/go/admin/command"
	"powercloud.unidatum.com/go/api/client"
	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/api/route"
	"powercloud.unidatum.com/go/cluster/address"
	"powercloud.unidatum.com/go/cluster/registry"
	"powercloud.unidatum.com/go/cluster/volumekey"
	"powercloud.unidatum.com/go/keys/code"
	"powercloud.unidatum.com/go/pki"
)

func (g *group) unlockCommand() *cli.Command {
	return &cli.Command{
		Name:      "unlock",
		Usage:     "Unlock a node's state volume after a restart",
		UsageText: "pcctl --repo LOC,... node unlock [--json] NAME CODE [HOST[:PORT]]",
		Description: `Unlocks the encrypted state volume of a node that was restarted, with the unlock
code that its console shows. The key is sent only to a node whose own key has
the code for its fingerprint, and whose node ID and volume ID are the ones in
the cluster's registry.

HOST[:PORT] reaches the node at another address, for this time only.` + changeJSON,
		Flags:  []cli.Flag{command.JSONFlag()},
		Action: g.telling(g.unlockNode),
	}
}

func (g *group) unlockNode(ctx context.Context, cmd *cli.Command) error {
	args, err := command.Args(cmd, 2, 3)
	if err != nil {
		return err
	}
	var fingerprint pki.Fingerprint
	typed, err := code.Parse(args[1], len(fingerprint))
	if err != nil {
		return command.Usagef("the unlock %v", err)
	}
	copy(fingerprint[:], typed)
	var at address.Address
	if len(args) == 3 {
		if at, err = address.Parse(args[2], address.APIPort); err != nil {
			return command.Usagef("%v", err)
		}
	}
	c, err := g.unlock(ctx, cmd)
	if err != nil {
		return err
	}
	defer c.leave(ctx)
	n, err := c.registry.Find(args[0])
	if err != nil {
		return err
	}
	// The storage may have forgotten that the node was removed.
	learned, err := c.recall(ctx, n.ID)
	if err == nil && learned {
		err = c.republish(ctx)
	}
	if err != nil {
		return err
	}
	if n, err = c.registry.Find(args[0]); err != nil {
		return err
	}
	if at.IsZero() {
		at = n.Address.Value
	}
	if at.IsZero() {
		return fmt.Errorf("node %s has no address yet (run 'pcctl --repo ... node addr %s HOST', or give the address here)", n.Name, n.Name)
	}
	err = c.open(ctx, n, at, fingerprint)
	if errors.Is(err, errNotLocked) {
		// A node that is open shows its certificate, whose key isn't the code's. The
		// answer to an earlier try may have been lost. That the certificate has expired
		// changes nothing, but the node must have its key.
		node := c.expirable(at, n)
		if _, closed := meet(ctx, node, n); closed == nil {
			err = nil
		}
		node.Close()
	}
	if err != nil {
		return err
	}
	c.about(n)
	if err := c.say("node %s unlocked\n", n.Name); err != nil || n.Confirmed.Value {
		return err
	}
	return remedy(c.complete(ctx, n.ID, at), n.Name)
}

// complete does what is left to do of the enrollment of a node that had its identity
// before its power was cut, and whose pcctl never heard so.
func (c *cluster) complete(ctx context.Context, id pki.NodeID, at address.Address) error {
	key, err := c.meshKey(ctx, at, id)
	if err != nil {
		return err
	}
	list, err := c.number(ctx, memberships(), 0, func(r *registry.Registry) error {
		n, err := r.Find(id.String())
		if err != nil {
			return err
		}
		n.MeshKey.Set(key, c.Env.Now())
		n.Confirmed.Set(true, c.Env.Now())
		return nil
	})
	if err != nil {
		return err
	}
	n, err := c.registry.Find(id.String())
	if err != nil {
		return err
	}
	if err := c.remember(n); err != nil {
		return err
	}
	return c.spreadAll(ctx, list)
}

// open sends a node its volume's key, if it is the node.
func (c *cluster) open(ctx context.Context, n *registry.Node, at address.Address, fingerprint pki.Fingerprint) error {
	if n.Attestation.Value.SEVSNP {
		return fmt.Errorf("node %s must show an AMD SEV-SNP attestation, which this pcctl can't verify", n.Name)
	}
	lock, err := askPinned(ctx, at, fingerprint, route.GetLock(), new(message.None))
	if err != nil {
		return err
	}
	// Another copy of the header may be the true one.
	if !slices.ContainsFunc(append([]message.Lock{*lock}, lock.Others...), func(l message.Lock) bool { return l.ID == n.ID && l.Volume == n.Volume }) {
		return fmt.Errorf("it says that it is node %s with the volume %s, and node %s is %s with the volume %s", lock.ID, lock.Volume, n.Name, n.ID, n.Volume)
	}
	key, err := volumekey.Derive(c.objects.Repository.Root, n.Volume)
	if err != nil {
		return err
	}
	defer clear(key[:])
	request := &message.Unlock{Volume: n.Volume, VolumeKey: message.Key(key)}
	defer request.Wipe()
	_, err = askPinned(ctx, at, fingerprint, route.Unlock(), request)
	return err
}

// errNotLocked says that what answers isn't the locked node whose console shows the code.
var errNotLocked = errors.New("node key does not match the unlock code")

// askPinned asks a locked node over a connection of its own, and again while it is busy.
func askPinned[Request, Answer any](ctx context.Context, at address.Address, fingerprint pki.Fingerprint, call route.Call[Request, Answer], request *Request) (*Answer, error) {
	return patiently(ctx, func() (*Answer, error) { return askPinnedOnce(ctx, at, fingerprint, call, request) })
}

func askPinnedOnce[Request, Answer any](ctx context.Context, at address.Address, fingerprint pki.Fingerprint, call route.Call[Request, Answer], request *Request) (*Answer, error) {
	node, err := client.Pinned(ctx, at, fingerprint, nil)
	switch {
	case errors.Is(err, client.ErrFingerprint), errors.Is(err, client.ErrMember):
		return nil, errNotLocked
	case err != nil:
		return nil, err
	}
	defer node.Close()
	return client.Do(ctx, node, call, request)
}
