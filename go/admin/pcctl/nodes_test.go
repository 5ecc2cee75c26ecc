package pcctl

import (
	"testing"

	"powercloud.unidatum.com/go/admin/nodelist"
	"powercloud.unidatum.com/go/cluster/address"
	"powercloud.unidatum.com/go/keys"
	"powercloud.unidatum.com/go/pki"
)

func TestNodeList(t *testing.T) {
	s, dir := newLogin(t)
	s.want(0, "node", "ls")
	s.wantStdout("NAME  ID  ADDRESS\n")
	own, other := s.bed.Cluster.ID, keys.ClusterID{1}
	err := nodelist.Update(dir, func(l *nodelist.List) error {
		for _, n := range []struct {
			cluster keys.ClusterID
			name    string
			id      byte
			at      string
		}{{own, "home-1", 0xfa, "192.0.2.10"}, {own, "cloud-1", 0x3c, "[2001:db8::1]"}, {other, "else-1", 1, "192.0.2.11:1"}} {
			at, err := address.Parse(n.at, address.APIPort)
			if err != nil {
				return err
			}
			l.Put(nodelist.Node{Cluster: n.cluster, Name: n.name, ID: pki.NodeID{n.id}, Address: at})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.want(0, "node", "ls", "--json")
	s.wantStdout(`{"name":"else-1","id":"0100000000000000","address":"192.0.2.11:1"}
{"name":"cloud-1","id":"3c00000000000000","address":"[2001:db8::1]:7443"}
{"name":"home-1","id":"fa00000000000000","address":"192.0.2.10:7443"}
`)
	s.want(0, "login")
	s.want(0, "node", "ls")
	s.wantStdout(`NAME     ID                ADDRESS
cloud-1  3c00000000000000  [2001:db8::1]:7443
home-1   fa00000000000000  192.0.2.10:7443
`)
	s.want(2, "node")
	s.want(2, "node", "ls", "x")
	if err := dir.Write("nodes.json", []byte(`{"nodes":null}`)); err != nil {
		t.Fatal(err)
	}
	s.want(1, "node", "ls")
	s.wantStderr("pcctl: nodes.json in the configuration directory can't be read; delete it and run 'pcctl --repo ... node addr' for each node: it has no list of nodes\n")
	s.config = ""
	s.want(1, "node", "ls")
}
