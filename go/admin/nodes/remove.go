package nodes

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"powercloud.unidatum.com/go/admin/command"
	"powercloud.unidatum.com/go/admin/configuration"
	"powercloud.unidatum.com/go/admin/nodelist"
	"powercloud.unidatum.com/go/api/client"
	"powercloud.unidatum.com/go/api/route"
	"powercloud.unidatum.com/go/cluster/registry"
)

func (g *group) rmCommand() *cli.Command {
	return &cli.Command{
		Name:      "rm",
		Usage:     "Remove a node from the cluster",
		UsageText: "pcctl --repo LOC,... node rm [--erase] NAME",
		Description: `Removes a node: its certificate is revoked on every node, and it is dropped from the
membership list, the cluster's registry and nodes.json. It can't be unlocked any
more.

With --erase, the node first destroys the wrapped copies of its volume's key and
powers off; its next start finds a blank disk. If it can't be reached, nothing is
removed.`,
		Flags:  []cli.Flag{&cli.BoolFlag{Name: "erase", Usage: "have the node erase its state volume first"}},
		Action: g.rm,
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
	found, err := c.registry.Find(args[0])
	if err != nil {
		return err
	}
	n := *found
	if cmd.Bool("erase") {
		if err := c.erase(ctx, &n); err != nil {
			return fmt.Errorf("node %s was not erased, and nothing is removed (without --erase it can be removed all the same): %w", n.Name, err)
		}
	}
	err = c.update(ctx, func(r *registry.Registry) error {
		r.Remove(n.ID)
		r.Revocations++
		return nil
	})
	if err != nil {
		return err
	}
	err = nodelist.Update(c.Directory(), func(list *nodelist.List) error {
		list.Remove(c.registry.Cluster, n.ID)
		return nil
	})
	if err != nil {
		return err
	}
	err = c.Env.Printf("node %s (%s) removed: its certificate is revoked (revocation list serial %d)\n", n.Name, n.ID, c.registry.Revocations)
	if err != nil {
		return err
	}
	if err := c.publishRevocations(ctx); err != nil {
		return err
	}
	if err := c.publishMembershipQuietly(ctx, &n); err != nil {
		return err
	}
	return c.keep(ctx)
}

// erase has a node erase itself.
func (c *cluster) erase(ctx context.Context, n *registry.Node) error {
	if n.Address.Value.IsZero() {
		return errNoAddress
	}
	node := c.client(n.Address.Value, n.ID)
	defer node.Close()
	_, err := client.Do(ctx, node, route.Erase(), nil)
	return err
}

// publishMembershipQuietly hands every node the membership list without one that was
// removed, and that one too, if it still listens: it learns of its removal so.
func (c *cluster) publishMembershipQuietly(ctx context.Context, removed *registry.Node) error {
	if err := c.update(ctx, func(r *registry.Registry) error { r.Membership++; return nil }); err != nil {
		return err
	}
	list, err := c.membership()
	if err != nil {
		return err
	}
	// The table of the revocation list has told who wasn't reached.
	c.push(ctx, list, route.PutMembership())
	if removed.Address.Value.IsZero() {
		return nil
	}
	revoked, err := c.revocations()
	if err != nil {
		return err
	}
	// It may be gone, and it has no reason to obey.
	_, _ = c.hand(ctx, *removed, revoked, route.PutRevocations())
	return nil
}
