package nodes

import (
	"bytes"
	"context"
	"errors"

	"github.com/urfave/cli/v3"

	"powercloud.unidatum.com/go/admin/command"
	"powercloud.unidatum.com/go/admin/configuration"
	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/cluster/address"
	"powercloud.unidatum.com/go/cluster/registry"
	"powercloud.unidatum.com/go/pki"
)

func (g *group) addrCommand() *cli.Command {
	return &cli.Command{
		Name:      "addr",
		Usage:     "Record where a node is",
		UsageText: "pcctl --repo LOC,... node addr [--json] NAME HOST[:PORT]",
		Description: `Records where pcctl reaches a node's API, in the cluster's registry and in
nodes.json. Port 7443 is used if no other is given. If the node's mesh endpoint
was empty, or followed from the old address, it becomes port 51820 of the new
host. If that changes the membership list, a new one is published.

It is also how another admin's machine learns of a node.` + changeJSON,
		Flags:  []cli.Flag{command.JSONFlag()},
		Action: g.telling(g.addr),
	}
}

func (g *group) addr(ctx context.Context, cmd *cli.Command) error {
	args, err := command.Args(cmd, 2, 2)
	if err != nil {
		return err
	}
	at, err := address.Parse(args[1], address.APIPort)
	if err != nil {
		return command.Usagef("%v", err)
	}
	if g.Env.ConfigDir == "" {
		return configuration.ErrNone
	}
	c, err := g.unlock(ctx, cmd)
	if err != nil {
		return err
	}
	defer c.leave(ctx)
	moved, listed := false, false
	err = c.update(ctx, func(r *registry.Registry) error {
		n, err := r.Find(args[0])
		if err != nil {
			return err
		}
		before, err := r.Members().Encode()
		if err != nil {
			return err
		}
		moved = n.SetAddress(at, c.Env.Now())
		after, err := r.Members().Encode()
		listed = !bytes.Equal(before, after)
		return err
	})
	if err != nil {
		return err
	}
	n, err := c.registry.Find(args[0])
	if err != nil {
		return err
	}
	c.about(n)
	if err := c.remember(n); err != nil {
		return err
	}
	if err := c.say("node %s is at %s\n", n.Name, n.Address.Value); err != nil {
		return err
	}
	if moved {
		if err := c.say("mesh endpoint of %s set to %s\n", n.Name, n.Endpoint.Value); err != nil {
			return err
		}
	}
	if !listed {
		if current, err := c.catchUp(ctx, *n); err != nil || current {
			return errors.Join(err, c.keep(ctx))
		}
	}
	return c.republish(ctx)
}

// catchUp hands a node the lists as they are: while nobody knew where it was, it got none.
// current is false where others are to be published: what the nodes have is newer.
func (c *cluster) catchUp(ctx context.Context, n registry.Node) (current bool, err error) {
	if !n.Confirmed.Value {
		return true, nil
	}
	if learned, err := c.recall(ctx, pki.NodeID{}); err != nil || learned {
		return false, err
	}
	for _, k := range []kind{revocations(), memberships()} {
		if *k.serial(c.registry) == 0 {
			continue
		}
		list, err := c.numbered(ctx, k)
		if err != nil {
			return false, err
		}
		_, err = c.hand(ctx, n, list, k.call)
		var forgotten *forgottenError
		if message.HasCode(err, message.CodeOlder) || errors.As(err, &forgotten) {
			return false, nil
		}
		if err != nil {
			c.Warn("node %s: %v", n.Name, err)
			return true, nil
		}
	}
	return true, nil
}
