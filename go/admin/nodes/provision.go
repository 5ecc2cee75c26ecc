package nodes

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v3"

	"powercloud.unidatum.com/go/admin/command"
	"powercloud.unidatum.com/go/admin/configuration"
	"powercloud.unidatum.com/go/cluster/address"
	"powercloud.unidatum.com/go/cluster/joinbundle"
	"powercloud.unidatum.com/go/cluster/meshkey"
	"powercloud.unidatum.com/go/cluster/nodename"
	"powercloud.unidatum.com/go/cluster/registry"
	"powercloud.unidatum.com/go/cluster/volumeid"
	"powercloud.unidatum.com/go/cluster/volumekey"
	"powercloud.unidatum.com/go/pki"
	"powercloud.unidatum.com/go/pki/document"
	"powercloud.unidatum.com/go/sys/atomicfile"
)

// bundleMode is that of a join bundle's file, which has secrets.
const bundleMode = 0o600

func (g *group) provisionCommand() *cli.Command {
	return &cli.Command{
		Name:      "provision",
		Usage:     "Make a join bundle for a new node",
		UsageText: "pcctl --repo LOC,... node provision [--json] [--addr HOST[:PORT]] [--endpoint IP:PORT] NAME FILE",
		Description: `Makes a node's whole identity ahead of time and writes it to FILE as a join
bundle, for a machine that joins at its first start with nobody at its console.
The node is registered, and a membership list with it is published.

FILE must not exist. It holds the node's private keys and the key of its disk:
delete it once the node is up.` + changeJSON,
		Flags: []cli.Flag{
			command.JSONFlag(),
			&cli.StringFlag{Name: "addr", Usage: "where the node's API will be, `HOST[:PORT]`"},
			&cli.StringFlag{Name: "endpoint", Usage: "where peers will reach the node's WireGuard, `IP:PORT`"},
		},
		Action: g.telling(g.provision),
	}
}

// order is what provision was asked for.
type order struct {
	name, file     string
	addr, endpoint address.Address
}

func parseOrder(cmd *cli.Command) (*order, error) {
	args, err := command.Args(cmd, 2, 2)
	if err != nil {
		return nil, err
	}
	o := &order{name: args[0], file: args[1]}
	if err := nodename.Check(o.name); err != nil {
		return nil, command.Usagef("%v", err)
	}
	if text := cmd.String("addr"); text != "" {
		if o.addr, err = address.Parse(text, address.APIPort); err != nil {
			return nil, command.Usagef("--addr: %v", err)
		}
	}
	if text := cmd.String("endpoint"); text != "" {
		if o.endpoint, err = address.Parse(text, 0); err != nil {
			return nil, command.Usagef("--endpoint: %v", err)
		}
	}
	return o, nil
}

func (g *group) provision(ctx context.Context, cmd *cli.Command) error {
	o, err := parseOrder(cmd)
	if err != nil {
		return err
	}
	// Before the passphrase is asked for.
	if _, err := g.nodeLifetime(); err != nil {
		return err
	}
	if g.Env.ConfigDir == "" {
		return configuration.ErrNone
	}
	switch _, err := os.Lstat(o.file); {
	case err == nil:
		return fmt.Errorf("%s: %w", command.Printable(o.file), fs.ErrExist)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	c, err := g.unlock(ctx, cmd)
	if err != nil {
		return err
	}
	defer c.leave(ctx)
	// Before there is anything to undo.
	if err := c.certify(ctx); err != nil {
		return err
	}
	// The bundle's lists are all that the node knows, until somebody reaches it.
	if _, err := c.recall(ctx, pki.NodeID{}); err != nil {
		return err
	}
	b := new(joinbundle.Bundle)
	defer b.Wipe()
	n, list, err := c.invent(ctx, o, b)
	if err != nil {
		return err
	}
	size, err := c.issue(ctx, o, n, list, b)
	if err != nil {
		return c.withdraw(ctx, n, err)
	}
	// The bundle is there, and can't be made again: what fails now keeps nothing from its
	// peers.
	var remembered error
	if !o.addr.IsZero() {
		remembered = c.remember(n)
	}
	c.about(n)
	c.done.Bundle = o.file
	printed := c.say("provisioned node %s (%s)\n", n.Name, n.ID)
	if err := c.spreadAll(ctx, list); err != nil {
		return errors.Join(remembered, printed, err)
	}
	return errors.Join(remembered, printed, c.explainBundle(o, size))
}

// invent makes a node's keys and enters it into the registry. It returns the membership
// list that has the node.
func (c *cluster) invent(ctx context.Context, o *order, b *joinbundle.Bundle) (*registry.Node, *document.Document, error) {
	public, private, err := ed25519.GenerateKey(c.Env.Rand)
	if err != nil {
		return nil, nil, fmt.Errorf("make the node's key: %w", err)
	}
	defer clear(private)
	copy(b.NodeKey[:], private[:ed25519.SeedSize])
	mesh, err := meshkey.New(c.Env.Rand)
	if err != nil {
		return nil, nil, err
	}
	defer mesh.Wipe()
	b.WireGuardKey = joinbundle.Key(mesh)
	meshPublic, err := mesh.Public()
	if err != nil {
		return nil, nil, err
	}
	entry, err := c.newNode(o.name, public)
	if err != nil {
		return nil, nil, err
	}
	if err := c.vacant(ctx, o.name, entry.ID); err != nil {
		return nil, nil, err
	}
	now := c.Env.Now()
	entry.MeshKey.Set(meshPublic, now)
	// A node without an endpoint is behind a NAT: it isn't made up from its address.
	entry.Endpoint.Set(o.endpoint, now)
	entry.Address.Set(o.addr, now)
	// The bundle is what it has its identity by. Whether that is ever used shows later.
	entry.Confirmed.Set(true, now)
	list, err := c.number(ctx, memberships(), 0, func(r *registry.Registry) error {
		// The bundle has a revocation list too, which has a serial then.
		r.Revocations = max(r.Revocations, 1)
		return enter(r, entry, address.Address{}, now)
	})
	if err != nil {
		return nil, nil, err
	}
	n, err := c.registry.Find(entry.ID.String())
	return n, list, err
}

// newNode returns the entry of a node with a key.
func (c *cluster) newNode(name string, key ed25519.PublicKey) (registry.Node, error) {
	var volume volumeid.ID
	if _, err := c.Env.Rand.Read(volume[:]); err != nil {
		return registry.Node{}, fmt.Errorf("choose a volume ID: %w", err)
	}
	return registry.NewNode(name, key, volume, c.Env.Now())
}

// issue writes the bundle's file, and returns its size in bytes.
func (c *cluster) issue(ctx context.Context, o *order, n *registry.Node, members *document.Document, b *joinbundle.Bundle) (size int, err error) {
	certificate, err := c.issueNode(n.Key, c.Env.Now())
	if err != nil {
		return 0, err
	}
	key, err := volumekey.Derive(c.objects.Repository.Root, n.Volume)
	if err != nil {
		return 0, err
	}
	defer clear(key[:])
	revoked, err := c.numbered(ctx, revocations())
	if err != nil {
		return 0, err
	}
	b.NodeCertificate, b.CACertificate = certificate.Raw, c.ca.Authority().Certificate().Raw
	b.VolumeID, b.VolumeKey = n.Volume, joinbundle.Key(key)
	b.Membership, b.Revocations = members.Signed(), revoked.Signed()
	text, err := b.Encode()
	if err != nil {
		return 0, err
	}
	defer clear(text)
	if err := writeNew(o.file, text); err != nil {
		return 0, fmt.Errorf("write the join bundle: %w", err)
	}
	return len(text), nil
}

// writeNew writes a bundle's file, which must not be there, or leaves none.
func writeNew(path string, text []byte) error {
	err := atomicfile.Create(path, text, bundleMode)
	if errors.Is(err, fs.ErrExist) {
		return err
	}
	if err == nil {
		err = atomicfile.SyncDirectory(filepath.Dir(path))
	}
	if err == nil {
		return nil
	}
	// What is there is this pcctl's, and has secrets.
	if removeErr := os.Remove(path); !errors.Is(removeErr, fs.ErrNotExist) {
		err = errors.Join(err, removeErr)
	}
	return err
}

// withdraw revokes a node whose bundle could not be written. What is left of it in a
// file is no use to anybody then.
func (c *cluster) withdraw(ctx context.Context, n *registry.Node, cause error) error {
	return errors.Join(cause, c.update(ctx, func(r *registry.Registry) error {
		r.Remove(n.ID)
		r.Revocations++
		return nil
	}))
}

// carriers are what hands a bundle to a machine, and how many bytes each takes, as docs/
// formats.md says; 0 is any number.
var carriers = []struct {
	name, command string
	most          int
}{
	{"AWS", "aws ec2 run-instances --user-data file://%s ...", 16 << 10},
	{"GCP", "gcloud compute instances create --metadata-from-file user-data=%s ...", 256 << 10},
	{"Azure", "az vm create --user-data %s ...", 64 << 10},
	{"QEMU", "-fw_cfg name=opt/powercloud/join,file=%s", 0},
}

// explainBundle says what is to be done with a bundle of some size.
func (c *cluster) explainBundle(o *order, size int) error {
	file := command.Printable(o.file)
	lines := ""
	for _, to := range carriers {
		if to.most > 0 && size > to.most {
			c.Warn("the join bundle has %d bytes, and %s takes %d of user data: enroll a machine there by its console", size, to.name, to.most)
			continue
		}
		lines += fmt.Sprintf("  %-7s "+to.command+"\n", to.name+":", file)
	}
	err := c.say("join bundle written to %s. Give it to the machine as user data:\n%s"+
		"It holds the node's private keys and disk key: delete the file once the node is up, and the user data too where the provider allows it.\n", file, lines)
	if err != nil || !o.addr.IsZero() {
		return err
	}
	return c.say("Once the node is up, tell pcctl where it is: pcctl --repo ... node addr %s HOST[:PORT]\n", o.name)
}
