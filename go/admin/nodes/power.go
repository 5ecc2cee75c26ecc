package nodes

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v3"

	"powercloud.unidatum.com/go/admin/command"
	"powercloud.unidatum.com/go/admin/credentials"
	"powercloud.unidatum.com/go/admin/nodelist"
	"powercloud.unidatum.com/go/api/client"
	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/api/route"
)

func (g *group) rebootCommand() *cli.Command {
	return &cli.Command{
		Name:      "reboot",
		Usage:     "Reboot a node",
		UsageText: "pcctl node reboot [--json] NAME",
		Description: `Reboots a node in good order. Its state volume is locked then, until it is
unlocked. A pcd that runs as an ordinary program ends.` + changeJSON,
		Flags: []cli.Flag{command.JSONFlag()},
		Action: g.telling(func(ctx context.Context, cmd *cli.Command) error {
			return g.power(ctx, cmd, message.Reboot, "rebooting")
		}),
	}
}

func (g *group) poweroffCommand() *cli.Command {
	return &cli.Command{
		Name:      "poweroff",
		Usage:     "Power a node off",
		UsageText: "pcctl node poweroff [--json] NAME",
		Description: `Powers a node off in good order. It has to be started again at the machine, or
at its provider. A pcd that runs as an ordinary program ends.` + changeJSON,
		Flags: []cli.Flag{command.JSONFlag()},
		Action: g.telling(func(ctx context.Context, cmd *cli.Command) error {
			return g.power(ctx, cmd, message.PowerOff, "powering off")
		}),
	}
}

func (g *group) power(ctx context.Context, cmd *cli.Command, action, doing string) error {
	args, err := command.Args(cmd, 1, 1)
	if err != nil {
		return err
	}
	n, _, err := askKnown(ctx, g, args[0], route.Power(), &message.Power{Action: action})
	if err != nil {
		return err
	}
	g.done.Node, g.done.ID, g.done.Address, g.done.Action = n.Name, n.ID.String(), n.Address.String(), action
	return g.say("node %s is %s\n", n.Name, doing)
}

// askKnown asks a node that this machine knows.
func askKnown[Request, Answer any](ctx context.Context, g *group, name string, call route.Call[Request, Answer], request *Request) (nodelist.Node, *Answer, error) {
	node, n, err := g.connect(name, false)
	if err != nil {
		return n, nil, err
	}
	defer node.Close()
	answer, err := client.Do(ctx, node, call, request)
	if err != nil {
		return n, nil, explain(err, n.Name)
	}
	return n, answer, nil
}

// connect returns a client for a node that this machine knows, with its admin
// certificate. expired lets the node's certificate have expired. The caller closes it.
func (g *group) connect(name string, expired bool) (*client.Client, nodelist.Node, error) {
	admin, err := credentials.Load(g.Directory())
	if err != nil {
		return nil, nodelist.Node{}, err
	}
	if err := admin.Check(g.Env.Now()); err != nil {
		return nil, nodelist.Node{}, err
	}
	list, err := nodelist.Load(g.Directory())
	if err != nil {
		return nil, nodelist.Node{}, err
	}
	n, err := list.Find(admin.Authority.Cluster(), name)
	if err != nil {
		return nil, nodelist.Node{}, err
	}
	return g.clientOf(admin, n, expired), n, nil
}

func (g *group) clientOf(admin *credentials.Credentials, n nodelist.Node, expired bool) *client.Client {
	return client.New(client.Peer{Address: n.Address, Authority: admin.Authority, ID: n.ID, Expired: expired}, admin.TLS(), g.Env.Now)
}

// errRefused says what to do about a client.ErrRefused.
var errRefused = errors.New("the node refused the admin certificate; if admin certificates were revoked, run 'pcctl --repo ... login'")

// explain says what to do about an error of a node's.
func explain(err error, name string) error {
	switch {
	case errors.Is(err, client.ErrRefused):
		return errRefused
	case errors.Is(err, client.ErrNodeExpired):
		return remedy(err, name)
	}
	return fmt.Errorf("node %s: %w", name, err)
}

// remedy adds to the error that a node's certificate has expired what is to be done.
func remedy(err error, name string) error {
	if !errors.Is(err, client.ErrNodeExpired) {
		return err
	}
	return fmt.Errorf("%w (renew the node's certificate with 'pcctl --repo ... node renew %s')", client.ErrNodeExpired, name)
}
