package nodes

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"fmt"
	"time"

	"github.com/urfave/cli/v3"

	"powercloud.unidatum.com/go/admin/credentials"
	"powercloud.unidatum.com/go/admin/nodelist"
	"powercloud.unidatum.com/go/admin/progress"
	"powercloud.unidatum.com/go/admin/session"
	"powercloud.unidatum.com/go/api/client"
	"powercloud.unidatum.com/go/cluster/address"
	"powercloud.unidatum.com/go/cluster/registry"
	"powercloud.unidatum.com/go/pki"
)

// cluster is an unlocked cluster whose nodes are being changed.
type cluster struct {
	*group
	objects *session.Objects
	ca      *pki.CA
	// certificate is an admin's, for this command alone: it doesn't matter whether this
	// machine's has expired.
	certificate *tls.Certificate
	// kept is where the registry is kept.
	kept registry.Objects
	// registry is what there was when it was read or changed last.
	registry *registry.Registry
	// written is what this pcctl has changed it to last, and each what was found in each
	// object right after that.
	written *registry.Registry
	each    []*registry.Registry
}

// unlock unlocks the cluster and reads its registry. The caller leaves it.
func (g *group) unlock(ctx context.Context, cmd *cli.Command) (_ *cluster, err error) {
	opened, err := g.Objects(ctx, cmd, &progress.Bar{})
	if err != nil {
		return nil, err
	}
	c := &cluster{group: g, objects: opened, kept: session.SystemObjects{Store: opened.Store}}
	defer func() {
		if err != nil {
			c.leave(ctx)
		}
	}()
	if c.ca, err = pki.NewCA(opened.Repository.Root, opened.Repository.Cluster); err != nil {
		return nil, err
	}
	if c.registry, err = registry.Load(ctx, c.kept, opened.Repository.Cluster); err != nil {
		return nil, err
	}
	if c.certificate, err = c.admin(); err != nil {
		return nil, err
	}
	return c, nil
}

// leave ends the work with the cluster.
func (c *cluster) leave(ctx context.Context) {
	c.WarnMissed(c.objects)
	if c.ca != nil {
		c.ca.Wipe()
	}
	c.Leave(ctx, c.objects.Repository)
}

// admin issues an admin's certificate that is kept nowhere.
func (c *cluster) admin() (*tls.Certificate, error) {
	public, private, err := ed25519.GenerateKey(c.Env.Rand)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	issued := c.registry.Revoked.IssueTime(c.Env.Now().UTC().Truncate(time.Second))
	certificate, err := c.ca.IssueAdmin(public, issued, c.Env.Rand)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: private}, nil
}

// certify writes an admin certificate for this machine if it has none of the cluster.
func (c *cluster) certify(ctx context.Context) error {
	// If it is another cluster's, 'pcctl login' changes that.
	if has, err := credentials.Exist(c.Directory()); err != nil || has {
		return err
	}
	_, err := c.Certify(ctx, c.objects.Repository)
	return err
}

// client returns a client for a node. The caller closes it.
func (c *cluster) client(at address.Address, id pki.NodeID) *client.Client {
	return client.New(client.Peer{Address: at, Authority: c.ca.Authority(), ID: id}, c.certificate, c.Env.Now)
}

// update changes the registry, and reads it again: another may have changed it at the
// same moment.
func (c *cluster) update(ctx context.Context, change func(*registry.Registry) error) error {
	written, err := registry.Update(ctx, c.kept, c.registry.Cluster, change)
	if err != nil {
		return err
	}
	found, each, err := registry.LoadEach(ctx, c.kept, c.registry.Cluster)
	if err != nil {
		return err
	}
	c.registry, c.written, c.each = found, written, each
	return nil
}

// keep reads the registry again, which another pcctl may have changed meanwhile. What
// locations have forgotten of it is written again.
func (c *cluster) keep(ctx context.Context) error {
	kept, err := registry.Keep(ctx, c.kept, c.registry)
	if err == nil {
		c.registry = kept
	}
	return err
}

// remember puts a node into this machine's list.
func (c *cluster) remember(n *registry.Node) error {
	return nodelist.Update(c.Directory(), func(list *nodelist.List) error {
		list.Put(nodelist.Node{Cluster: c.registry.Cluster, Name: n.Name, ID: n.ID, Address: n.Address.Value})
		return nil
	})
}
