package nodes

import (
	"context"
	"slices"
	"time"

	"powercloud.unidatum.com/go/cluster/registry"
	"powercloud.unidatum.com/go/cluster/revocation"
	"powercloud.unidatum.com/go/pki"
)

// recallWait is how long nodes have to say what they have revoked: some may be away.
const recallWait = 3 * time.Second

// recall asks every member what it has revoked, and revokes that again if storage that was
// put back to an earlier state has forgotten it. Who doesn't answer in time isn't waited
// for: this comes before what would trust a removed node, and nodes that were restarted
// together must not keep each other locked. Neither is one that is left out. learned is
// whether there was something: the nodes are to get new lists then.
func (c *cluster) recall(ctx context.Context, without pki.NodeID) (learned bool, err error) {
	var members []registry.Node
	for _, n := range c.registry.Names() {
		if n.Confirmed.Value && !n.Address.Value.IsZero() && n.ID != without {
			members = append(members, n)
		}
	}
	asking, cancel := context.WithTimeout(ctx, recallWait)
	defer cancel()
	lists := make([]revocation.List, len(members))
	// All at once: none has to wait until others have used up the time.
	severally(len(members), len(members), func(i int) {
		node := c.client(members[i].Address.Value, members[i].ID)
		defer node.Close()
		if list, err := c.revokedBy(asking, node); err == nil {
			lists[i] = list
		}
	})
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if !slices.ContainsFunc(lists, c.lacks) {
		return false, nil
	}
	// What another admin has revoked meanwhile isn't forgotten.
	if err := c.keep(ctx); err != nil {
		return false, err
	}
	var revoked revocation.List
	for i, list := range lists {
		if c.lacks(list) {
			c.warnForgotten(members[i].Name)
			revoked = revoked.Merge(list)
		}
	}
	if !c.lacks(revoked) {
		return false, nil
	}
	return true, c.update(ctx, func(r *registry.Registry) error {
		if r.Revoke(revoked) {
			r.Revocations++
		}
		return nil
	})
}

// warnForgotten says that a node has revoked what the registry hasn't.
func (c *cluster) warnForgotten(name string) {
	c.Warn("node %s knows of revocations that the storage has forgotten; they are recorded again", name)
}
