package nodes

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v3"

	"powercloud.unidatum.com/go/admin/command"
	"powercloud.unidatum.com/go/admin/configuration"
	"powercloud.unidatum.com/go/admin/nodelist"
	"powercloud.unidatum.com/go/api/client"
	"powercloud.unidatum.com/go/api/route"
	"powercloud.unidatum.com/go/cluster/address"
	"powercloud.unidatum.com/go/cluster/registry"
	"powercloud.unidatum.com/go/pki"
	"powercloud.unidatum.com/go/pki/document"
)

func (g *group) rmCommand() *cli.Command {
	return &cli.Command{
		Name:      "rm",
		Usage:     "Remove a node from the cluster",
		UsageText: "pcctl --repo LOC,... node rm [--json] [--erase] NAME",
		Description: `Removes a node: its certificate is revoked on every node, and it is dropped from
the membership list, the cluster's registry and nodes.json. It can't be unlocked
any more.

With --erase, the node first destroys the wrapped copies of its volume's key and
powers off; its next start finds a blank disk. If it can't be reached, nothing
is removed.` + changeJSON,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "erase", Usage: "have the node erase its state volume first"},
			command.JSONFlag(),
		},
		Action: g.telling(g.rm),
	}
}

func (g *group) rm(ctx context.Context, cmd *cli.Command) error {
	args, err := command.Args(cmd, 1, 1)
	if err != nil {
		return err
	}
	if g.Env.ConfigDir == "" {
		return configuration.ErrNone
	}
	c, err := g.unlock(ctx, cmd)
	if err != nil {
		return err
	}
	defer c.leave(ctx)
	n, removed, err := c.removable(args[0])
	if err != nil {
		return err
	}
	if cmd.Bool("erase") && !removed {
		if err := c.erase(ctx, n.Address.Value, n.ID); err != nil {
			return fmt.Errorf("node %s has not said that it is erased, and nothing is removed (without --erase it can be removed all the same): %w", n.Name, remedy(err, n.Name))
		}
	}
	list, err := c.number(ctx, revocations(), 0, func(r *registry.Registry) error { r.Remove(n.ID); return nil })
	if err != nil {
		return err
	}
	// Before anything is said, which can fail.
	list, outcomes, err := c.spread(ctx, revocations(), list)
	if err != nil {
		return err
	}
	c.about(n)
	err = c.say("node %s (%s) removed: its certificate is revoked (revocation list serial %d)\n", n.Name, n.ID, list.Serial)
	if err != nil {
		return err
	}
	if err := c.reportRevocations(list, outcomes); err != nil {
		return err
	}
	if list, err = c.spreadRest(ctx, list); err != nil {
		return err
	}
	if !cmd.Bool("erase") {
		// If it still listens, it learns of its removal so. It may be gone, and it has no
		// reason to obey.
		_, _ = c.hand(ctx, *n, list, route.PutRevocations())
	}
	// The last of it: until then the name is known, by which the command can be run again.
	return nodelist.Update(c.Directory(), func(list *nodelist.List) error {
		list.Remove(c.registry.Cluster, n.ID)
		return nil
	})
}

// reportRevocations says what became of a revocation list.
func (c *cluster) reportRevocations(list *document.Document, outcomes []outcome) error {
	c.done.Revocations = publishedAs(list.Serial, outcomes)
	return c.report("REVOCATION LIST", outcomes)
}

// spreadRest hands the nodes that are left a membership list. A node that the revocation
// list didn't reach may answer only then, and know of revocations that the storage has
// forgotten. They are recorded by that, and a revocation list that has them is handed out
// as well. It returns the revocation list that nodes get last.
func (c *cluster) spreadRest(ctx context.Context, list *document.Document) (*document.Document, error) {
	members, err := c.number(ctx, memberships(), 0, nil)
	if err != nil {
		return nil, err
	}
	revoked := c.registry.Revoked
	// The table of the revocation list has told who wasn't reached.
	if _, _, err := c.spread(ctx, memberships(), members); err != nil {
		return nil, err
	}
	if c.registry.Revoked.Equal(revoked) {
		return list, nil
	}
	list, outcomes, err := c.spreadRevocations(ctx)
	if err != nil {
		return nil, err
	}
	return list, c.reportRevocations(list, outcomes)
}

// removable returns the node that is to be removed. One that an earlier 'node rm' has
// removed, whose end was cut off, is found by its ID, or by this machine's list of nodes.
func (c *cluster) removable(name string) (n *registry.Node, removed bool, err error) {
	found, err := c.registry.Find(name)
	if err == nil {
		n := *found
		return &n, false, nil
	}
	if !errors.Is(err, registry.ErrUnknown) {
		return nil, false, err
	}
	if id, parseErr := pki.ParseNodeID(name); parseErr == nil && c.registry.Revoked.HasNode(id) {
		return &registry.Node{Name: name, ID: id}, true, nil
	}
	list, listErr := nodelist.Load(c.Directory())
	if listErr != nil {
		return nil, false, listErr
	}
	known, listErr := list.Find(c.registry.Cluster, name)
	if listErr != nil || !c.registry.Revoked.HasNode(known.ID) {
		return nil, false, err
	}
	n = &registry.Node{Name: known.Name, ID: known.ID}
	n.Address.Value = known.Address
	return n, true, nil
}

// erase has a node erase itself.
func (c *cluster) erase(ctx context.Context, at address.Address, id pki.NodeID) error {
	if at.IsZero() {
		return errNoAddress
	}
	node := c.client(at, id)
	defer node.Close()
	_, err := client.Do(ctx, node, route.Erase(), nil)
	return err
}
