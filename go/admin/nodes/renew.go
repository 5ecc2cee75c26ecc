package nodes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v3"

	"powercloud.unidatum.com/go/admin/command"
	"powercloud.unidatum.com/go/api/client"
	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/api/route"
	"powercloud.unidatum.com/go/cluster/address"
	"powercloud.unidatum.com/go/cluster/registry"
	"powercloud.unidatum.com/go/pki"
)

func (g *group) renewCommand() *cli.Command {
	return &cli.Command{
		Name:      "renew",
		Usage:     "Renew nodes' certificates",
		UsageText: "pcctl --repo LOC,... node renew [--json] [NAME...]",
		Description: `Renews nodes' certificates, which last a year: of the nodes that are named, or
without names of every node whose certificate expires within 30 days or has
expired.

A certificate that has expired tells of the node's key as well as another. Only
the node that has the key of the cluster's registry gets a new one. The command
fails if one of them could not be renewed, and renews the others all the same.

With --json: a line for each node, with the members node, id, address,
certificate ("renewed", "not due" or "not renewed"), expires, and error.`,
		Flags:  []cli.Flag{command.JSONFlag()},
		Action: g.renew,
	}
}

func (g *group) renew(ctx context.Context, cmd *cli.Command) error {
	names, err := command.Args(cmd, 0, -1)
	if err != nil {
		return err
	}
	// Before the passphrase is asked for.
	if _, err := g.nodeLifetime(); err != nil {
		return err
	}
	c, err := g.unlock(ctx, cmd)
	if err != nil {
		return err
	}
	defer c.leave(ctx)
	renewals, err := c.renewals(names)
	if err != nil {
		return err
	}
	severally(len(renewals), maxAtOnce, func(i int) { c.renewOne(ctx, &renewals[i], len(names) > 0) })
	if err := g.writeRenewals(renewals, cmd.Bool("json")); err != nil {
		return err
	}
	return missed(renewals)
}

// renewal is what became of a node's certificate.
type renewal struct {
	node registry.Node
	// expires is when the certificate expires that the node has now; not known if there is
	// an error. renewed reports whether that is a new one.
	expires time.Time
	renewed bool
	err     error
}

// renewals returns the nodes that are named, or all that are members, before anything is
// done to them: a name that is unknown is a mistake.
func (c *cluster) renewals(names []string) ([]renewal, error) {
	var list []renewal
	if len(names) == 0 {
		for _, n := range c.registry.Names() {
			// One that isn't known to have got its identity is no member, and may never come.
			if n.Confirmed.Value {
				list = append(list, renewal{node: n})
			}
		}
		return list, nil
	}
	for _, name := range names {
		n, err := c.registry.Find(name)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(list, func(r renewal) bool { return r.node.ID == n.ID }) {
			list = append(list, renewal{node: *n})
		}
	}
	return list, nil
}

// renewOne renews a node's certificate, if that is due or always is set.
func (c *cluster) renewOne(ctx context.Context, r *renewal, always bool) {
	n := &r.node
	if n.Address.Value.IsZero() {
		r.err = fmt.Errorf("%w (run 'pcctl --repo ... node addr %s HOST')", errNoAddress, n.Name)
		return
	}
	node := c.expirable(n.Address.Value, n)
	defer node.Close()
	has, err := meet(ctx, node, n)
	if err != nil {
		r.err = err
		return
	}
	if r.expires = has.Expires; !always && r.expires.Sub(c.Env.Now()) > reminder {
		return
	}
	r.expires, r.err = c.replace(ctx, node, n, has.Issued)
	r.renewed = r.err == nil
}

// replace gives a node a certificate that is newer than the one that it has, and returns
// when it expires.
func (c *cluster) replace(ctx context.Context, node *client.Client, n *registry.Node, before time.Time) (time.Time, error) {
	from := c.Env.Now().UTC().Truncate(time.Second)
	if !from.After(before) {
		// The clock of whoever issued that one was ahead, and a node takes no older one.
		from = before.Add(time.Second)
	}
	certificate, err := c.issueNode(n.Key, from)
	if err != nil {
		return time.Time{}, err
	}
	_, err = client.Do(ctx, node, route.PutCertificate(), &message.Certificate{Certificate: certificate.Raw})
	if err == nil {
		return certificate.NotAfter, nil
	}
	// Its answer can have been lost, or another admin was quicker: what it shows now tells.
	again := c.expirable(n.Address.Value, n)
	defer again.Close()
	has, lost := meet(ctx, again, n)
	var said *message.Error
	switch {
	case lost == nil && !has.Issued.Before(from):
		return has.Expires, nil
	case lost != nil && !errors.As(err, &said):
		return time.Time{}, fmt.Errorf("%w; whether the node took the new one isn't known: run the command again", err)
	}
	return time.Time{}, err
}

// expirable returns a client for a node whose certificate may have expired. The caller
// closes it.
func (c *cluster) expirable(at address.Address, n *registry.Node) *client.Client {
	return client.New(client.Peer{Address: at, Authority: c.ca.Authority(), ID: n.ID, Expired: true}, c.certificate, c.Env.Now)
}

// meet returns what a node's certificate says, if it is for the key that the registry
// has, and the node accepts the caller.
func meet(ctx context.Context, node *client.Client, n *registry.Node) (pki.Identity, error) {
	_, err := client.Do(ctx, node, route.GetMesh(), nil)
	if errors.Is(err, client.ErrNotMember) && !errors.Is(err, pki.ErrNotYetValid) {
		return pki.Identity{}, fmt.Errorf("%w (if it is locked, unlock it first with 'pcctl --repo ... node unlock %s CODE')", err, n.Name)
	}
	if err != nil {
		return pki.Identity{}, err
	}
	has, met := node.Met()
	if !met || !n.Key.Equal(has.Key) {
		// An ID is only a part of what could be compared of a key.
		return pki.Identity{}, client.ErrNode
	}
	return has, nil
}

// String says what became of the certificate.
func (r renewal) String() string {
	text := r.outcome()
	if r.err != nil {
		return text + ": " + command.Line(r.err.Error())
	}
	return text + ", expires " + r.expires.UTC().Format(minute)
}

func (r renewal) outcome() string {
	switch {
	case r.err != nil:
		return "not renewed"
	case r.renewed:
		return "renewed"
	}
	return "not due"
}

// renewalResult is a renewal in JSON.
type renewalResult struct {
	Node        string `json:"node"`
	ID          string `json:"id"`
	Address     string `json:"address,omitempty"`
	Certificate string `json:"certificate"`
	// Expires is in RFC 3339 and UTC.
	Expires string `json:"expires,omitempty"`
	Error   string `json:"error,omitempty"`
}

func (r renewal) result() renewalResult {
	result := renewalResult{Node: r.node.Name, ID: r.node.ID.String(), Address: r.node.Address.Value.String(), Certificate: r.outcome()}
	if r.err != nil {
		result.Error = command.Line(r.err.Error())
		return result
	}
	result.Expires = r.expires.UTC().Format(time.RFC3339)
	return result
}

// writeRenewals prints what became of certificates: a table, or a line of JSON for each.
func (g *group) writeRenewals(renewals []renewal, asJSON bool) error {
	if asJSON {
		for _, r := range renewals {
			if err := command.WriteJSON(g.Env.Stdout, r.result()); err != nil {
				return err
			}
		}
		return nil
	}
	table := tabwriter.NewWriter(g.Env.Stdout, 0, 0, 2, ' ', 0)
	row(table, "NODE", "CERTIFICATE")
	for _, r := range renewals {
		row(table, r.node.Name, r.String())
	}
	if err := table.Flush(); err != nil {
		return &command.OutputError{Err: err}
	}
	return nil
}

// missed returns an error that names the nodes that could not be renewed, if there are
// any.
func missed(renewals []renewal) error {
	var names []string
	for _, r := range renewals {
		if r.err != nil {
			names = append(names, r.node.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("%s not renewed: %s", count(len(names), "node"), strings.Join(names, ", "))
}
