package pcctl

import (
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/go/admin/session"
	"powercloud.unidatum.com/go/cluster/joinbundle"
	"powercloud.unidatum.com/go/cluster/registry"
	"powercloud.unidatum.com/go/cluster/volumeid"
	"powercloud.unidatum.com/go/node/join"
	"powercloud.unidatum.com/go/node/lifecycle"
	"powercloud.unidatum.com/go/node/lifecycle/lifecycletest"
	"powercloud.unidatum.com/go/pki"
)

// given has a node find a join bundle.
func given(text []byte) func(*lifecycle.Config) {
	return func(c *lifecycle.Config) {
		c.Bundle = func(_ context.Context, check join.Check) (*joinbundle.Bundle, error) {
			b, err := joinbundle.Decode(text)
			if err != nil {
				return nil, err
			}
			return b, check(b)
		}
	}
}

// crowd enters a thousand members, of whom nobody knows where they are, and revokes as
// many nodes that are gone.
func crowd(r *registry.Registry) error {
	for i := range uint32(1000) {
		seed := make([]byte, ed25519.SeedSize)
		binary.BigEndian.PutUint32(seed, i)
		key := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
		n, err := registry.NewNode(fmt.Sprintf("node-%d", i), key, volumeid.ID(seed[:volumeid.Size]), time.Now())
		if err != nil {
			return err
		}
		n.Confirmed.Set(true, time.Now())
		if err := r.Add(n); err != nil {
			return err
		}
		var gone pki.NodeID
		binary.BigEndian.PutUint32(gone[:], i)
		r.Remove(gone)
	}
	r.Revocations++
	return nil
}

// TestProvisionForALargeCluster: the lists of a cluster of a thousand nodes, which has
// removed as many, fit into a bundle. Not every cloud takes it.
func TestProvisionForALargeCluster(t *testing.T) {
	s := newNodes(t)
	if _, err := registry.Update(t.Context(), session.SystemObjects{Store: s.bed.Open()}, s.bed.Cluster.ID, crowd); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "web-1.join")
	s.want(0, "node", "provision", "web-1", file)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	warnings := ""
	for _, cloud := range []string{"AWS takes 16384", "Azure takes 65536"} {
		warnings += fmt.Sprintf("warning: the join bundle has %d bytes, and %s of user data: enroll a machine there by its console\n", len(text), cloud)
	}
	if got := s.stderr.String(); !strings.HasSuffix(got, warnings) {
		t.Errorf("it warned of %s", got)
	}
	ways := fmt.Sprintf(`user data:
  GCP:    gcloud compute instances create --metadata-from-file user-data=%[1]s ...
  QEMU:   -fw_cfg name=opt/powercloud/join,file=%[1]s
It holds`, file)
	if got := s.stdout.String(); !strings.Contains(got, ways) {
		t.Errorf("it printed %s", got[max(0, len(got)-1000):])
	}
	lifecycletest.Start(t, newVolume(t), given(text)).IsMember()
	if r := s.registry(); len(r.Nodes) != 1001 || len(r.Revoked.Nodes) != 1000 {
		t.Errorf("the registry has %d nodes, and %d are revoked", len(r.Nodes), len(r.Revoked.Nodes))
	}
}
