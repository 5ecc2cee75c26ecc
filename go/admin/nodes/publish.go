package nodes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"text/tabwriter"

	"powercloud.unidatum.com/go/admin/command"
	"powercloud.unidatum.com/go/api/client"
	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/api/route"
	"powercloud.unidatum.com/go/cluster/registry"
	"powercloud.unidatum.com/go/pki/document"
)

// maxPushes is how many nodes are spoken to at a time.
const maxPushes = 32

// outcome is what became of a document at one node.
type outcome struct {
	node   registry.Node
	serial uint64
	err    error
}

// errNoAddress says that pcctl was never told where a node is.
var errNoAddress = errors.New("no address yet")

// membership signs the membership list that follows from the registry.
func (c *cluster) membership() (*document.Document, error) {
	body, err := c.registry.Members().Encode()
	if err != nil {
		return nil, err
	}
	return document.Sign(c.ca, document.Membership, c.registry.Membership, body)
}

// revocations signs the revocation list that is in the registry.
func (c *cluster) revocations() (*document.Document, error) {
	body, err := c.registry.Revoked.Encode()
	if err != nil {
		return nil, err
	}
	return document.Sign(c.ca, document.Revocations, c.registry.Revocations, body)
}

// publishMembership hands every node the membership list, and says what became of it.
func (c *cluster) publishMembership(ctx context.Context) error {
	list, err := c.membership()
	if err != nil {
		return err
	}
	outcomes := c.push(ctx, list, route.PutMembership())
	if err := c.Env.Printf("mesh membership: %s (serial %d)\n", count(len(c.registry.Nodes), "node"), list.Serial); err != nil {
		return err
	}
	return c.report("MEMBERSHIP", outcomes)
}

// publishRevocations hands every node the revocation list, and says what became of it.
func (c *cluster) publishRevocations(ctx context.Context) error {
	list, err := c.revocations()
	if err != nil {
		return err
	}
	return c.report("REVOCATION LIST", c.push(ctx, list, route.PutRevocations()))
}

// push hands a document to every node, several at a time.
func (c *cluster) push(ctx context.Context, d *document.Document, call route.Call[message.Document, message.Serial]) []outcome {
	nodes := c.registry.Names()
	outcomes := make([]outcome, len(nodes))
	turns := make(chan struct{}, maxPushes)
	var pushing sync.WaitGroup
	for i, n := range nodes {
		pushing.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			serial, err := c.hand(ctx, n, d, call)
			outcomes[i] = outcome{n, serial, err}
		})
	}
	pushing.Wait()
	return outcomes
}

// hand hands a document to one node, and returns the serial of the one it has then.
func (c *cluster) hand(ctx context.Context, n registry.Node, d *document.Document, call route.Call[message.Document, message.Serial]) (uint64, error) {
	if n.Address.Value.IsZero() {
		return 0, errNoAddress
	}
	node := c.client(n.Address.Value, n.ID)
	defer node.Close()
	has, err := client.Do(ctx, node, call, &message.Document{Signed: d.Signed()})
	if err != nil {
		return 0, err
	}
	return has.Serial, nil
}

// report prints a table of what became of a document.
func (c *cluster) report(column string, outcomes []outcome) error {
	table := tabwriter.NewWriter(c.Env.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "NODE\t%s\n", column)
	for _, o := range outcomes {
		fmt.Fprintf(table, "%s\t%s\n", o.node.Name, o)
	}
	if err := table.Flush(); err != nil {
		return &command.OutputError{Err: err}
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
