package pcctl

import (
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/go/admin/configuration"
	"powercloud.unidatum.com/go/admin/credentials"
	"powercloud.unidatum.com/go/api/client"
	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/api/route"
	"powercloud.unidatum.com/go/cluster/revocation"
	"powercloud.unidatum.com/go/keys/keystest"
	"powercloud.unidatum.com/go/node/lifecycle/lifecycletest"
	"powercloud.unidatum.com/go/pki"
	"powercloud.unidatum.com/go/pki/document"
)

// TestAdminRefused: the node doesn't take the admin's certificate any more.
func TestAdminRefused(t *testing.T) {
	s := newNodes(t)
	node := lifecycletest.Start(t, newVolume(t), nil)
	s.want(0, "node", "enroll", node.Address, node.EnrollmentCode(), "home-1")
	s.revokeAdmins("home-1")
	const refused = "the node refused the admin certificate; if admin certificates were revoked, run 'pcctl --repo ... login'"
	for _, command := range []string{"info", "reboot", "poweroff", "logs"} {
		s.want(1, "node", command, "home-1")
		s.wantStderr("pcctl: " + refused + "\n")
	}
	s.want(0, "status")
	if got := s.stdout.String(); !strings.Contains(got, "\n  home-1: unreachable ("+refused+")\n") {
		t.Errorf("%s", got)
	}
}

// revokeAdmins has a node refuse every admin's certificate of now.
func (s *trial) revokeAdmins(name string) {
	s.t.Helper()
	ca, err := pki.NewCA(keystest.First(s.t).Root(s.t), s.bed.Cluster.ID)
	if err != nil {
		s.t.Fatal(err)
	}
	body, err := revocation.List{}.WithAdmins(time.Now().Add(time.Hour)).Encode()
	if err != nil {
		s.t.Fatal(err)
	}
	list, err := document.Sign(ca, document.Revocations, 100, body)
	if err != nil {
		s.t.Fatal(err)
	}
	admin, err := credentials.Load(configuration.Directory(s.config))
	if err != nil {
		s.t.Fatal(err)
	}
	n := s.find(name)
	c := client.New(client.Peer{Address: n.Address.Value, Authority: admin.Authority, ID: n.ID}, admin.TLS(), time.Now)
	defer c.Close()
	if _, err := client.Do(s.t.Context(), c, route.PutRevocations(), &message.Document{Signed: list.Signed()}); err != nil {
		s.t.Fatal(err)
	}
}

// TestAdminExpired: the admin's certificate is over, and no node is asked.
func TestAdminExpired(t *testing.T) {
	s := newNodes(t)
	node := lifecycletest.Start(t, newVolume(t), nil)
	s.want(0, "node", "enroll", node.Address, node.EnrollmentCode(), "home-1")
	s.bed.Now = time.Now().Add(pki.AdminLifetime + time.Hour)
	for _, args := range [][]string{{"status"}, {"node", "info", "home-1"}, {"node", "reboot", "home-1"}, {"node", "logs", "home-1"}, {"node", "ping", "home-1", "localhost"}} {
		s.want(1, args...)
		s.wantStderr("pcctl: admin certificate expired (run 'pcctl --repo ... login')\n")
	}
	select {
	case action := <-node.Power:
		t.Errorf("the node was told to %s", action)
	default:
	}
}
