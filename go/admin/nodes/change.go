package nodes

import (
	"context"

	"github.com/urfave/cli/v3"

	"powercloud.unidatum.com/go/admin/command"
	"powercloud.unidatum.com/go/cluster/registry"
)

// change is what a command has done to a node, as it is printed with --json.
type change struct {
	Node string `json:"node"`
	ID   string `json:"id"`
	// Address and Endpoint are where its API and its WireGuard are reached, if that is
	// known.
	Address  string `json:"address,omitempty"`
	Endpoint string `json:"endpoint,omitempty"`
	// Bundle is the file with a join bundle.
	Bundle string `json:"bundle,omitempty"`
	// Action is what the node does now.
	Action string `json:"action,omitempty"`
	// Membership and Revocations are the lists that were published.
	Membership  *published `json:"membership,omitempty"`
	Revocations *published `json:"revocations,omitempty"`

	asJSON bool
}

// published is what became of a list.
type published struct {
	Serial uint64     `json:"serial"`
	Nodes  []received `json:"nodes"`
}

// received is what became of a list at one node: the serial of the one that it has now,
// or why that isn't known.
type received struct {
	Node   string `json:"node"`
	Serial uint64 `json:"serial,omitempty"`
	Error  string `json:"error,omitempty"`
}

// telling has a command tell what it does: in words as it does it, or at its end as
// JSON.
func (g *group) telling(do cli.ActionFunc) cli.ActionFunc {
	return func(ctx context.Context, cmd *cli.Command) error {
		g.done = change{asJSON: cmd.Bool("json")}
		if err := do(ctx, cmd); err != nil || !g.done.asJSON {
			return err
		}
		return command.WriteJSON(g.Env.Stdout, &g.done)
	}
}

// say prints words.
func (g *group) say(format string, args ...any) error {
	if g.done.asJSON {
		return nil
	}
	return g.Env.Printf(format, args...)
}

// about says which node was changed.
func (g *group) about(n *registry.Node) {
	g.done.Node, g.done.ID, g.done.Address, g.done.Endpoint = n.Name, n.ID.String(), n.Address.Value.String(), n.Endpoint.Value.String()
}

// publishedAs returns what became of a list.
func publishedAs(serial uint64, outcomes []outcome) *published {
	p := &published{Serial: serial, Nodes: []received{}}
	for _, o := range outcomes {
		r := received{Node: o.node.Name, Serial: o.serial}
		if o.err != nil {
			r.Error = command.Line(o.err.Error())
		}
		p.Nodes = append(p.Nodes, r)
	}
	return p
}

// changeJSON says in a command's help what it prints as JSON.
const changeJSON = `

With --json: a line with what was done, with the members node and id, and,
where they apply, address, endpoint, bundle, action, and membership and
revocations, each with the serial of the list that was published and what
became of it at each node.`
