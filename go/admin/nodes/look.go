package nodes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v3"

	"powercloud.unidatum.com/go/admin/command"
	"powercloud.unidatum.com/go/admin/credentials"
	"powercloud.unidatum.com/go/admin/nodelist"
	"powercloud.unidatum.com/go/api/client"
	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/api/route"
)

const (
	// statusPatience is how long a node has to answer, before it counts as unreachable.
	statusPatience = 10 * time.Second
	// reachPatience is how much of that the connection may take: if that fails, it is
	// said how.
	reachPatience = 8 * time.Second
)

func (g *group) infoCommand() *cli.Command {
	return &cli.Command{
		Name:      "info",
		Usage:     "Show a node's details",
		UsageText: "pcctl node info [--json] NAME",
		Description: `Asks a node for its details: IDs, architecture, kernel, boot and lockdown, where
it keeps its state, its certificate, the cluster's authority, and the serials of
the lists that it has. It fails if the node's certificate has expired, and shows
all of that in any case.

With --json: the node's answer, on a line.`,
		Flags:  []cli.Flag{command.JSONFlag()},
		Action: g.info,
	}
}

func (g *group) info(ctx context.Context, cmd *cli.Command) error {
	args, err := command.Args(cmd, 1, 1)
	if err != nil {
		return err
	}
	node, n, err := g.connect(args[0], true)
	if err != nil {
		return err
	}
	defer node.Close()
	info, err := client.Do(ctx, node, route.GetInfo(), nil)
	if err != nil {
		return explain(err, n.Name)
	}
	if cmd.Bool("json") {
		err = command.WriteJSON(g.Env.Stdout, info)
	} else {
		err = WriteInfo(g.Env.Stdout, n.Name, *info, g.Env.Now())
	}
	if err != nil {
		return err
	}
	// What it says is of use to whoever looks for what is wrong, and no reason to go on.
	if has, _ := node.Met(); g.Env.Now().After(has.Expires) {
		return remedy(client.ErrNodeExpired, n.Name)
	}
	return nil
}

func (g *group) statusCommand() *cli.Command {
	return &cli.Command{
		Name:      "status",
		Usage:     "Show how every node is, and what needs attention",
		UsageText: "pcctl status [--json]",
		Description: `Asks every node that this machine knows about itself, all at once. One that
doesn't answer within 10 seconds is unreachable. What needs attention follows
the table, or "all nodes healthy".

With --json, a line for each node.`,
		Flags:  []cli.Flag{command.JSONFlag()},
		Action: g.status,
	}
}

func (g *group) status(ctx context.Context, cmd *cli.Command) error {
	if _, err := command.Args(cmd, 0, 0); err != nil {
		return err
	}
	list, err := nodelist.Load(g.Directory())
	if err != nil {
		return err
	}
	var answers []Answer
	if len(list.Nodes) > 0 {
		admin, err := credentials.Load(g.Directory())
		if err != nil {
			return err
		}
		if err := admin.Check(g.Env.Now()); err != nil {
			return err
		}
		answers = g.answers(ctx, admin, list.Of(admin.Authority.Cluster()))
	}
	if cmd.Bool("json") {
		return WriteStatusJSON(g.Env.Stdout, answers, g.Env.Now())
	}
	return WriteStatus(g.Env.Stdout, answers, g.Env.Now())
}

// answers asks nodes how they are.
func (g *group) answers(ctx context.Context, admin *credentials.Credentials, nodes []nodelist.Node) []Answer {
	answers := make([]Answer, len(nodes))
	// All at once, so that those that don't answer are waited for together.
	severally(len(nodes), len(nodes), func(i int) { answers[i] = g.answer(ctx, admin, nodes[i]) })
	return answers
}

func (g *group) answer(ctx context.Context, admin *credentials.Credentials, n nodelist.Node) Answer {
	late := fmt.Errorf("the node has not answered within %s", statusPatience)
	ctx, cancel := context.WithTimeoutCause(ctx, statusPatience, late)
	defer cancel()
	peer := client.Peer{Address: n.Address, Authority: admin.Authority, ID: n.ID, Patience: reachPatience}
	node := client.New(peer, admin.TLS(), g.Env.Now)
	defer node.Close()
	status, err := client.Do(ctx, node, route.GetStatus(), nil)
	switch {
	case errors.Is(err, client.ErrRefused):
		err = errRefused
	case err != nil && context.Cause(ctx) == late:
		err = late
	case err != nil:
		err = remedy(err, n.Name)
	default:
		return Answer{Name: n.Name, Status: *status}
	}
	return Answer{Name: n.Name, Err: err}
}

func (g *group) pingCommand() *cli.Command {
	return &cli.Command{
		Name:      "ping",
		Usage:     "Try the network from a node",
		UsageText: "pcctl node ping [--json] NAME HOST[:PORT]",
		Description: `Has a node look up a host, and try each of its addresses: with ICMP echo, or, if
there is a port, with a TCP connection. It fails if no address answers.

With --json: the node's answer, on a line.`,
		Flags:  []cli.Flag{command.JSONFlag()},
		Action: g.ping,
	}
}

func (g *group) ping(ctx context.Context, cmd *cli.Command) error {
	args, err := command.Args(cmd, 2, 2)
	if err != nil {
		return err
	}
	n, pinged, err := askKnown(ctx, g, args[0], route.Ping(), &message.Ping{Target: args[1]})
	if err != nil {
		return err
	}
	if cmd.Bool("json") {
		err = command.WriteJSON(g.Env.Stdout, pinged)
	} else {
		err = writePinged(g.Env.Stdout, pinged)
	}
	if err != nil {
		return err
	}
	return reached(n.Name, args[1], pinged)
}
