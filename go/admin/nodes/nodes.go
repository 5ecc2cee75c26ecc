// Package nodes holds pcctl's commands on nodes: node and status.
package nodes

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v3"

	"powercloud.unidatum.com/go/admin/command"
	"powercloud.unidatum.com/go/admin/credentials"
	"powercloud.unidatum.com/go/admin/nodelist"
	"powercloud.unidatum.com/go/admin/session"
)

// group is the commands of one run of pcctl.
type group struct {
	*session.Session
	// done is what the command has done to a node.
	done change
	// silence is how long a node may take for the next part of a log that ends.
	silence time.Duration
}

// Commands returns the commands.
func Commands(cluster *session.Session) []*cli.Command {
	g := &group{Session: cluster, silence: maxSilence}
	return []*cli.Command{{
		Name:        "node",
		Usage:       "Manage nodes",
		UsageText:   "pcctl [--repo LOC,...] node COMMAND ...",
		Description: `Nodes are the machines that run PowerCloud OS and have joined the cluster.`,
		Commands: []*cli.Command{g.lsCommand(), g.infoCommand(), g.enrollCommand(), g.provisionCommand(), g.addrCommand(), g.unlockCommand(),
			g.rmCommand(), g.renewCommand(), g.rebootCommand(), g.poweroffCommand(), g.logsCommand(), g.pingCommand()},
		Action: func(context.Context, *cli.Command) error {
			return command.Usagef("node needs a command; see 'pcctl help node'")
		},
	}, g.statusCommand()}
}

func (g *group) lsCommand() *cli.Command {
	return &cli.Command{
		Name:      "ls",
		Usage:     "List the nodes that this machine knows",
		UsageText: "pcctl node ls [--json]",
		Description: `Lists the nodes in nodes.json in the configuration directory, without asking
them: name, node ID, and the address of the node's API. If that file has nodes
of several clusters, those of the admin certificate's are listed.

With --json, a line for each node: {"name": NAME, "id": HEX, "address": ADDRESS}`,
		Flags:  []cli.Flag{command.JSONFlag()},
		Action: g.ls,
	}
}

// nodeResult describes a node in JSON.
type nodeResult struct {
	Name    string `json:"name"`
	ID      string `json:"id"`
	Address string `json:"address"`
}

func (g *group) ls(_ context.Context, cmd *cli.Command) error {
	if _, err := command.Args(cmd, 0, 0); err != nil {
		return err
	}
	known, err := g.known()
	if err != nil {
		return err
	}
	if cmd.Bool("json") {
		for _, n := range known {
			if err := command.WriteJSON(g.Env.Stdout, nodeResult{n.Name, n.ID.String(), n.Address.String()}); err != nil {
				return err
			}
		}
		return nil
	}
	table := tabwriter.NewWriter(g.Env.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tID\tADDRESS")
	for _, n := range known {
		fmt.Fprintf(table, "%s\t%s\t%s\n", n.Name, n.ID, n.Address)
	}
	if err := table.Flush(); err != nil {
		return &command.OutputError{Err: err}
	}
	return nil
}

// known returns the nodes that this machine knows in the cluster of its admin
// certificate, or in all if it has none.
func (g *group) known() ([]nodelist.Node, error) {
	list, err := nodelist.Load(g.Directory())
	if err != nil {
		return nil, err
	}
	authority, err := credentials.Authority(g.Directory())
	if errors.Is(err, credentials.ErrNone) {
		return list.Nodes, nil
	}
	if err != nil {
		return nil, err
	}
	return list.Of(authority.Cluster()), nil
}
