package nodes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"golang.org/x/sync/errgroup"

	"powercloud.unidatum.com/go/admin/command"
	"powercloud.unidatum.com/go/api/client"
	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/api/route"
	"powercloud.unidatum.com/go/cluster/registry"
	"powercloud.unidatum.com/go/cluster/revocation"
	"powercloud.unidatum.com/go/pki/document"
)

const (
	// maxAtOnce is how many nodes are spoken to at a time.
	maxAtOnce = 32
	// publishRounds is how often a list is published when others publish at the same
	// moment, or nodes have newer ones.
	publishRounds = 3
	// numberRounds is how often a list is numbered when others number theirs at the same
	// moment.
	numberRounds = 32
	// maxLost is how many serials a node may be ahead of the registry and be believed. A
	// registry that locations have an earlier state of is behind by few. Without a bound,
	// a node that lies could use up all serials that there are.
	maxLost = 1000
)

// kind is one of the lists that nodes get.
type kind struct {
	document.Kind
	// serial is where the registry has the list's serial, and body what is in the list.
	serial func(*registry.Registry) *uint64
	body   func(*registry.Registry) ([]byte, error)
	call   route.Call[message.Document, message.Serial]
	// has is the serial of the one that a node has, as it says.
	has func(*message.Info) uint64
}

func memberships() kind {
	return kind{document.Membership,
		func(r *registry.Registry) *uint64 { return &r.Membership },
		func(r *registry.Registry) ([]byte, error) { return r.Members().Encode() },
		route.PutMembership(),
		func(i *message.Info) uint64 { return i.Membership }}
}

func revocations() kind {
	return kind{document.Revocations,
		func(r *registry.Registry) *uint64 { return &r.Revocations },
		func(r *registry.Registry) ([]byte, error) { return r.Revoked.Encode() },
		route.PutRevocations(),
		func(i *message.Info) uint64 { return i.Revocations }}
}

// sign signs a list as it is in the registry.
func (c *cluster) sign(k kind) (*document.Document, error) {
	body, err := k.body(c.registry)
	if err != nil {
		return nil, err
	}
	return document.Sign(c.ca, k.Kind, *k.serial(c.registry), body)
}

// number gives a list the next serial after least and after all before, and signs it.
// change is what is to be done to the registry along with that; it may be called again.
func (c *cluster) number(ctx context.Context, k kind, least uint64, change func(*registry.Registry) error) (*document.Document, error) {
	for range numberRounds {
		err := c.update(ctx, func(r *registry.Registry) error {
			if change != nil {
				if err := change(r); err != nil {
					return err
				}
			}
			at := k.serial(r)
			*at = max(*at, least) + 1
			return nil
		})
		if err != nil {
			return nil, err
		}
		if sole, err := c.sole(k); err != nil {
			return nil, err
		} else if sole {
			return c.sign(k)
		}
	}
	return nil, registry.ErrContended
}

// numbered signs a list as it is in the registry, which this pcctl has just changed. If
// another has changed it at the same moment, the list may need a serial of its own.
func (c *cluster) numbered(ctx context.Context, k kind) (*document.Document, error) {
	sole, err := c.sole(k)
	if err != nil {
		return nil, err
	}
	if sole {
		return c.sign(k)
	}
	return c.number(ctx, k, 0, nil)
}

// sole reports whether a list, as it is in the registry, is the only one of its serial
// that anybody signs: this pcctl has written it, and what it found afterwards has no
// other of that serial. Of two who write at the same moment at least one finds what the
// other has written, and doesn't sign.
func (c *cluster) sole(k kind) (bool, error) {
	serial := *k.serial(c.registry)
	body, err := k.body(c.registry)
	if err != nil || *k.serial(c.written) != serial {
		return false, err
	}
	for _, r := range append([]*registry.Registry{c.written}, c.each...) {
		if *k.serial(r) != serial {
			continue
		}
		if other, err := k.body(r); err != nil || !bytes.Equal(other, body) {
			return false, err
		}
	}
	return true, nil
}

// spread hands a list to every node. If another pcctl has changed the registry meanwhile,
// or a node has a newer list than this, the list is numbered and handed out once more:
// whoever is last to change it hands out what has all changes, and a registry that is
// behind the nodes would keep some from ever having what all are to have. Storage that
// was put back to an earlier state may have forgotten who was removed: what nodes with
// newer lists revoke is revoked again first.
func (c *cluster) spread(ctx context.Context, k kind, list *document.Document) (*document.Document, []outcome, error) {
	for round := 1; ; round++ {
		outcomes := c.push(ctx, list, k.call)
		if err := errors.Join(ctx.Err(), c.keep(ctx)); err != nil {
			return nil, nil, err
		}
		body, err := k.body(c.registry)
		if err != nil {
			return nil, nil, err
		}
		newest, older := c.newest(ctx, k, list.Serial, outcomes)
		revoked, known := c.forgotten(outcomes)
		if round == publishRounds || !older && known && bytes.Equal(body, list.Body) {
			return list, outcomes, nil
		}
		again := func(r *registry.Registry) error {
			if r.Revoke(revoked) && k.Kind != document.Revocations {
				r.Revocations++
			}
			return nil
		}
		if list, err = c.number(ctx, k, newest, again); err != nil {
			return nil, nil, err
		}
	}
}

// newest returns the highest serial that nodes have, of those that refused a list as
// older than theirs. older is false if there are none.
func (c *cluster) newest(ctx context.Context, k kind, serial uint64, outcomes []outcome) (newest uint64, older bool) {
	for _, o := range outcomes {
		if !message.HasCode(o.err, message.CodeOlder) {
			continue
		}
		node := c.client(o.node.Address.Value, o.node.ID)
		info, err := client.Do(ctx, node, route.GetInfo(), nil)
		node.Close()
		if err != nil {
			continue
		}
		has := k.has(info)
		if has > serial && has-serial > maxLost {
			c.Warn("node %s says that its %s has serial %d, which can't be: the cluster is at %d", o.node.Name, k.Kind, has, serial)
			continue
		}
		newest, older = max(newest, has), true
	}
	return newest, older
}

// forgottenError says that a node has revoked what the registry hasn't, or hadn't when it
// was read.
type forgottenError struct{ list revocation.List }

func (e *forgottenError) Error() string {
	return "it knows of revocations that the storage has forgotten"
}

// forgotten returns what nodes have revoked and the registry hasn't, as it was read after
// they were asked: what another admin has revoked since it was read before isn't forgotten.
// known is true if no node had revoked more than was known when it was asked, or else it
// has no list yet.
func (c *cluster) forgotten(outcomes []outcome) (revoked revocation.List, known bool) {
	known = true
	for _, o := range outcomes {
		var forgotten *forgottenError
		if !errors.As(o.err, &forgotten) {
			continue
		}
		known = false
		if !c.lacks(forgotten.list) {
			continue
		}
		c.warnForgotten(o.node.Name)
		revoked = revoked.Merge(forgotten.list)
	}
	return revoked, known
}

// lacks reports whether the registry hasn't revoked all that a list does.
func (c *cluster) lacks(list revocation.List) bool {
	return !c.registry.Revoked.Covers(list)
}

// revokedBy returns what a node has revoked, by a list that the cluster's authority has
// signed.
func (c *cluster) revokedBy(ctx context.Context, node *client.Client) (revocation.List, error) {
	signed, err := client.Do(ctx, node, route.GetRevocations(), nil)
	if err != nil || len(signed.Signed) == 0 {
		return revocation.List{}, err
	}
	opened, err := document.Open(c.ca.Authority(), document.Revocations, signed.Signed)
	if err != nil {
		return revocation.List{}, err
	}
	return revocation.Decode(opened.Body)
}

// spreadAll hands every node the revocation list, if anything was ever revoked, and a
// membership list. It says what became of the latter: its table also shows who misses the
// other one.
func (c *cluster) spreadAll(ctx context.Context, members *document.Document) error {
	if _, _, err := c.spreadRevocations(ctx); err != nil {
		return err
	}
	revoked := c.registry.Revoked
	members, outcomes, err := c.spread(ctx, memberships(), members)
	if err != nil {
		return err
	}
	if !c.registry.Revoked.Equal(revoked) {
		if _, _, err := c.spreadRevocations(ctx); err != nil {
			return err
		}
	}
	c.done.Membership = publishedAs(members.Serial, outcomes)
	if err := c.say("mesh membership: %s (serial %d)\n", count(len(outcomes), "node"), members.Serial); err != nil {
		return err
	}
	return c.report("MEMBERSHIP", outcomes)
}

// republish hands every node the lists as they are in the registry, the membership list with
// a new serial.
func (c *cluster) republish(ctx context.Context) error {
	list, err := c.number(ctx, memberships(), 0, nil)
	if err != nil {
		return err
	}
	return c.spreadAll(ctx, list)
}

// spreadRevocations hands every node the revocation list, and returns it and what became
// of it. If nothing was ever revoked, there is no list.
func (c *cluster) spreadRevocations(ctx context.Context) (*document.Document, []outcome, error) {
	if c.registry.Revocations == 0 {
		return nil, nil, nil
	}
	list, err := c.numbered(ctx, revocations())
	if err != nil {
		return nil, nil, err
	}
	return c.spread(ctx, revocations(), list)
}

// outcome is what became of a document at one node.
type outcome struct {
	node   registry.Node
	serial uint64
	err    error
}

// errNoAddress says that pcctl was never told where a node is.
var errNoAddress = errors.New("no address yet")

// push hands a document to every member, several at a time.
func (c *cluster) push(ctx context.Context, d *document.Document, call route.Call[message.Document, message.Serial]) []outcome {
	var outcomes []outcome
	for _, n := range c.registry.Names() {
		if n.Confirmed.Value {
			outcomes = append(outcomes, outcome{node: n})
		}
	}
	severally(len(outcomes), maxAtOnce, func(i int) {
		o := &outcomes[i]
		o.serial, o.err = c.hand(ctx, o.node, d, call)
	})
	return outcomes
}

// severally does something for each of n nodes, by their numbers, so many at a time.
func severally(n, atOnce int, do func(i int)) {
	var doing errgroup.Group
	doing.SetLimit(max(atOnce, 1))
	for i := range n {
		doing.Go(func() error {
			do(i)
			return nil
		})
	}
	_ = doing.Wait() // Nothing fails.
}

// hand hands a document to one node, and returns the serial of the one it has then. A
// node that has revoked what the registry hasn't gets nothing: the error is a
// *forgottenError.
func (c *cluster) hand(ctx context.Context, n registry.Node, d *document.Document, call route.Call[message.Document, message.Serial]) (uint64, error) {
	if n.Address.Value.IsZero() {
		return 0, errNoAddress
	}
	node := c.client(n.Address.Value, n.ID)
	defer node.Close()
	revoked, err := c.revokedBy(ctx, node)
	if err != nil {
		return 0, remedy(err, n.Name)
	}
	if c.lacks(revoked) {
		return 0, &forgottenError{revoked}
	}
	has, err := client.Do(ctx, node, call, &message.Document{Signed: d.Signed()})
	if err != nil {
		return 0, remedy(err, n.Name)
	}
	return has.Serial, nil
}

// report prints a table of what became of a document.
func (c *cluster) report(column string, outcomes []outcome) error {
	if !c.done.asJSON {
		table := tabwriter.NewWriter(c.Env.Stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintf(table, "NODE\t%s\n", column)
		for _, o := range outcomes {
			fmt.Fprintf(table, "%s\t%s\n", o.node.Name, o)
		}
		if err := table.Flush(); err != nil {
			return &command.OutputError{Err: err}
		}
	}
	for _, o := range outcomes {
		if o.err != nil && !errors.Is(o.err, errNoAddress) {
			c.Warn("node %s: %v", o.node.Name, o.err)
		}
	}
	return nil
}

// String says what became of the document.
func (o outcome) String() string {
	switch {
	case errors.Is(o.err, errNoAddress):
		return "no address yet (it will get it from a mesh peer)"
	case o.err != nil:
		return "not updated (it will get it from a mesh peer)"
	}
	return fmt.Sprintf("serial %d", o.serial)
}

// count is a number of things in words.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	if strings.HasSuffix(thing, "s") {
		thing += "e"
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
