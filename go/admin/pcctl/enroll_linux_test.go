package pcctl

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/go/admin/configuration"
	"powercloud.unidatum.com/go/admin/nodelist"
	"powercloud.unidatum.com/go/admin/session"
	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/api/proof"
	"powercloud.unidatum.com/go/api/route"
	"powercloud.unidatum.com/go/api/server"
	"powercloud.unidatum.com/go/cluster/registry"
	"powercloud.unidatum.com/go/keys/keystest"
	"powercloud.unidatum.com/go/node/identity"
	"powercloud.unidatum.com/go/node/lifecycle"
	"powercloud.unidatum.com/go/node/lifecycle/lifecycletest"
	"powercloud.unidatum.com/go/node/state/statetest"
	"powercloud.unidatum.com/go/node/supervisor"
)

// newNodes returns a trial whose time is the nodes'.
func newNodes(t *testing.T) *trial {
	t.Helper()
	s, _ := newLogin(t)
	s.bed.Now = time.Now()
	return s
}

func newVolume(t *testing.T) *statetest.Volume { return &statetest.Volume{Folder: t.TempDir()} }

// registry returns what there is of the nodes.
func (s *trial) registry() *registry.Registry {
	s.t.Helper()
	r, err := registry.Load(s.t.Context(), session.SystemObjects{Store: s.bed.Open()}, s.bed.Cluster.ID)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// wantNode checks that a node is a member in every respect.
func (s *trial) wantNode(name string) registry.Node {
	s.t.Helper()
	n, err := s.registry().Find(name)
	if err != nil {
		s.t.Fatal(err)
	}
	if !n.Confirmed.Value || n.MeshKey.IsZero() {
		s.t.Errorf("the registry has %+v", n)
	}
	list, err := nodelist.Load(configuration.Directory(s.config))
	if err != nil {
		s.t.Fatal(err)
	}
	known, err := list.Find(s.bed.Cluster.ID, name)
	if err != nil || known.ID != n.ID || known.Address != n.Address.Value {
		s.t.Errorf("nodes.json has %+v, %v", known, err)
	}
	s.want(0, "node", "info", "--json", name)
	if got := s.stdout.String(); !strings.Contains(got, fmt.Sprintf(`"membership_serial":%d`, s.registry().Membership)) || !strings.Contains(got, fmt.Sprintf(`"name":%q`, name)) {
		s.t.Errorf("the node says %s; the registry is at %d", got, s.registry().Membership)
	}
	return *n
}

func (s *trial) wantError(text string, args ...string) {
	s.t.Helper()
	s.want(1, args...)
	if got := s.stderr.String(); !strings.Contains(got, text) {
		s.t.Errorf("pcctl %q says %q, not %q", args, got, text)
	}
}

func TestEnroll(t *testing.T) {
	s := newNodes(t)
	volume := newVolume(t)
	node := lifecycletest.Start(t, volume, nil)
	code := node.EnrollmentCode()
	id := node.Shows(`PowerCloud node ([0-9a-f]{16}) is waiting`)
	wrong := strings.Map(func(r rune) rune {
		if r == 'A' {
			return 'B'
		}
		return r
	}, "AAAA"+code[4:])
	s.want(2, "node", "enroll", node.Address, "AAAA", "home-1")
	s.wantError("pcctl: node key does not match the enrollment code (wrong code or interception)\n", "node", "enroll", node.Address, wrong, "home-1")
	s.want(0, "node", "enroll", node.Address, code, "home-1")
	s.wantStdout(fmt.Sprintf("enrolled node home-1 (%s) at %s\nmesh membership: 1 node (serial 1)\nNODE    MEMBERSHIP\nhome-1  serial 1\n", id, node.Address))
	s.wantStderr("")
	s.wantNode("home-1")
	s.wantError("pcctl: node is already enrolled in a cluster\n", "node", "enroll", node.Address, code, "home-1")
	s.wantError("node is already enrolled in a cluster", "node", "enroll", node.Address, code, "other")
	s.want(0, "node", "ls")

	other := lifecycletest.Start(t, newVolume(t), nil)
	s.wantError("pcctl: a node named \"home-1\" is already enrolled\n", "node", "enroll", other.Address, other.EnrollmentCode(), "home-1")
	s.want(0, "node", "enroll", other.Address, other.EnrollmentCode(), "colo-1")
	if got := s.stdout.String(); !strings.HasSuffix(got, "mesh membership: 2 nodes (serial 2)\nNODE    MEMBERSHIP\ncolo-1  serial 2\nhome-1  serial 2\n") {
		t.Errorf("%s", got)
	}

	s.want(0, "node", "rm", "colo-1")
	want := "removed: its certificate is revoked (revocation list serial 1)\nNODE    REVOCATION LIST\nhome-1  serial 1\n"
	if got := s.stdout.String(); !strings.HasSuffix(got, want) {
		t.Errorf("%s", got)
	}
	s.wantError(`the cluster's registry has no such node: "colo-1"`, "node", "rm", "colo-1")
	s.want(0, "node", "reboot", "home-1")
	s.wantStdout("node home-1 is rebooting\n")
	if action := <-node.Power; action != "reboot" {
		t.Errorf("the node was asked to %s", action)
	}
}

// TestEnrollOfAnotherCluster: the code is right, and somebody else came first.
func TestEnrollOfAnotherCluster(t *testing.T) {
	s, other := newNodes(t), newNodes(t)
	other.bed.Cluster = keystest.Second(t)
	other.bed.Init()
	other.environment["POWERCLOUD_RECOVERY_KEY"] = other.bed.Cluster.Recovery.String()
	node := lifecycletest.Start(t, newVolume(t), nil)
	code := node.EnrollmentCode()
	other.want(0, "node", "enroll", node.Address, code, "home-1")
	s.wantError("pcctl: node is already enrolled in a cluster\n", "node", "enroll", node.Address, code, "home-1")
	if n := len(s.registry().Nodes); n != 0 {
		t.Errorf("the registry has %d nodes", n)
	}
}

// TestEnrollCutOff: the cable is pulled, or pcctl ends, at every connection that an
// enrollment makes. Running the command again, it ends well.
func TestEnrollCutOff(t *testing.T) {
	connections := 0
	t.Run("whole", func(t *testing.T) {
		s := newNodes(t)
		node := lifecycletest.Start(t, newVolume(t), nil)
		c := newCable(t, node.Address)
		s.want(0, "node", "enroll", c.listener.Addr().String(), node.EnrollmentCode(), "home-1")
		connections = c.count()
	})
	if connections < 4 {
		t.Fatalf("an enrollment makes %d connections", connections)
	}
	for at := 1; at <= connections; at++ {
		for _, how := range []cut{before, answerLost} {
			for _, killed := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d/%d/%t", at, how, killed), func(t *testing.T) { enrollCutOff(t, at, how, killed) })
			}
		}
	}
}

func enrollCutOff(t *testing.T, at int, how cut, killed bool) {
	s := newNodes(t)
	node := lifecycletest.Start(t, newVolume(t), nil)
	c := newCable(t, node.Address)
	args := []string{"node", "enroll", c.listener.Addr().String(), node.EnrollmentCode(), "home-1"}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	onCut := func() {}
	if killed {
		onCut = cancel
	}
	c.cutAt(at, how, onCut)
	first := s.run(ctx, args...)
	said := s.stdout.String() + s.stderr.String()
	c.cutAt(0, before, nil)
	again := s.run(t.Context(), args...)
	// Once the node has its list there is nothing left that the command would do again.
	done := first == 0 || strings.HasPrefix(said, "enrolled node home-1")
	if again != 0 && !(done && s.stderr.String() == "pcctl: node is already enrolled in a cluster\n") {
		t.Fatalf("at first: status %d\n%s\nthen: status %d\n%s%s", first, said, again, s.stdout.String(), s.stderr.String())
	}
	if n := s.wantNode("home-1"); len(s.registry().Nodes) != 1 || n.Address.Value.String() != c.listener.Addr().String() {
		t.Errorf("the registry has %+v", s.registry().Nodes)
	}
	if len(s.registry().Revoked.Nodes) != 0 {
		t.Errorf("revoked are %+v", s.registry().Revoked)
	}
}

// TestNameOfANodeThatNeverCame: another machine can have it.
func TestNameOfANodeThatNeverCame(t *testing.T) {
	s := newNodes(t)
	broken := newVolume(t)
	broken.Creating = func(context.Context) error { return errors.New("state disk /dev/vda2 is full of holes") }
	first := lifecycletest.Start(t, broken, nil)
	code := first.EnrollmentCode()
	s.wantError("pcctl: state disk /dev/vda2 is full of holes\n", "node", "enroll", first.Address, code, "home-1")
	if n := s.registry().Nodes; len(n) != 1 || n[0].Confirmed.Value || len(s.registry().Members().Nodes) != 0 {
		t.Fatalf("the registry has %+v", n)
	}
	s.wantError(`an earlier try has entered the node as "home-1"`, "node", "enroll", first.Address, code, "other")
	second := lifecycletest.Start(t, newVolume(t), nil)
	s.wantError(`a node named "home-1" is just being enrolled; if that has failed, remove it first with 'pcctl node rm home-1'`,
		"node", "enroll", second.Address, second.EnrollmentCode(), "home-1")
	s.bed.Now = s.bed.Now.Add(10 * time.Minute)
	s.want(0, "node", "enroll", second.Address, second.EnrollmentCode(), "home-1")
	s.wantNode("home-1")
	r := s.registry()
	if len(r.Nodes) != 1 || len(r.Revoked.Nodes) != 1 {
		t.Errorf("the registry has %+v", r)
	}
	s.wantError("was removed from the cluster; restart it", "node", "enroll", first.Address, code, "home-2")
}

// TestNameOfANodeWhoseAnswerWasLost: a member keeps its name.
func TestNameOfANodeWhoseAnswerWasLost(t *testing.T) {
	s := newNodes(t)
	node := lifecycletest.Start(t, newVolume(t), nil)
	c := newCable(t, node.Address)
	c.cutAt(2, answerLost, nil)
	code := node.EnrollmentCode()
	s.wantError("run the command again", "node", "enroll", c.listener.Addr().String(), code, "home-1")
	node.IsMember()
	c.cutAt(0, before, nil)
	other := lifecycletest.Start(t, newVolume(t), nil)
	s.wantError(`a node named "home-1" is already enrolled`, "node", "enroll", other.Address, other.EnrollmentCode(), "home-1")
	// The node has moved meanwhile.
	s.want(0, "node", "enroll", node.Address, code, "home-1")
	if n := s.wantNode("home-1"); n.Address.Value.String() != node.Address {
		t.Errorf("it is at %s", n.Address.Value)
	}
}

// TestTwoAdminsEnrollOneName: the other enters its node while this one's makes its
// volume, and takes this one for a node that never came.
func TestTwoAdminsEnrollOneName(t *testing.T) {
	s := newNodes(t)
	volume := newVolume(t)
	volume.Creating = func(ctx context.Context) error {
		_, err := registry.Update(ctx, session.SystemObjects{Store: s.bed.Open()}, s.bed.Cluster.ID, func(r *registry.Registry) error {
			r.Remove(r.Nodes[0].ID)
			r.Revocations++
			return nil
		})
		return err
	}
	node := lifecycletest.Start(t, volume, nil)
	s.wantError("it was erased: start it, and enroll it with its new code", "node", "enroll", node.Address, node.EnrollmentCode(), "home-1")
	if action := <-node.Power; action != "poweroff" {
		t.Errorf("the node was asked to %s", action)
	}
	if r := s.registry(); len(r.Nodes) != 0 {
		t.Errorf("the registry has %+v", r.Nodes)
	}
}

// TestLostRegistry: the nodes have newer lists than the registry, of which a write was
// lost.
func TestLostRegistry(t *testing.T) {
	s := newNodes(t)
	s.loseRegistry(lifecycletest.Start(t, newVolume(t), nil))
	other := lifecycletest.Start(t, newVolume(t), nil)
	s.want(0, "node", "enroll", other.Address, other.EnrollmentCode(), "colo-1")
	if got := s.stdout.String(); !strings.HasSuffix(got, "colo-1  serial 5\nhome-1  serial 5\n") {
		t.Errorf("%s%s", got, s.stderr.String())
	}
	s.wantNode("home-1")
	s.wantNode("colo-1")
}

// TestNodeThatLies: it says that it has the newest list that there can be.
func TestNodeThatLies(t *testing.T) {
	s := newNodes(t)
	s.loseRegistry(lifecycletest.Start(t, newVolume(t), func(c *lifecycle.Config) {
		c.Member = func(h *server.Handlers, m *lifecycle.Member) []supervisor.Component {
			parts := lifecycletest.Member(h, m)
			server.Handle(h, route.GetInfo(), func(context.Context, server.Caller, *message.None) (*message.Info, error) {
				return &message.Info{Membership: math.MaxUint64 - 1}, nil
			})
			return parts
		}
	}))
	other := lifecycletest.Start(t, newVolume(t), nil)
	s.want(0, "node", "enroll", other.Address, other.EnrollmentCode(), "colo-1")
	if got := s.stdout.String(); !strings.HasSuffix(got, "colo-1  serial 2\nhome-1  not updated (it will get it from a mesh peer)\n") {
		t.Errorf("%s", got)
	}
	if got := s.stderr.String(); !strings.Contains(got, "warning: node home-1 says that its membership list has serial 18446744073709551614, which can't be: the cluster is at 2\n") {
		t.Errorf("%s", got)
	}
	s.wantNode("colo-1")
}

// TestOffersThatLie: what is offered isn't the key that the code is of.
func TestOffersThatLie(t *testing.T) {
	s := newNodes(t)
	key, err := identity.NewKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := server.SelfSigned(key, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	code := proof.Code{Fingerprint: key.Fingerprint()}
	for want, offer := range map[string]message.Offer{
		"node key does not match the enrollment code": {ID: key.ID(), Key: other},
		"the node's key is none":                      {ID: key.ID(), Key: other[:5]},
	} {
		handlers := server.NewHandlers()
		server.Handle(handlers, route.GetOffer(), func(context.Context, server.Caller, *message.None) (*message.Offer, error) { return &offer, nil })
		server.Handle(handlers, route.Enroll(), func(context.Context, server.Caller, *message.Enrollment) (*message.Enrolled, error) {
			t.Error("the node got a key")
			return nil, errors.New("no")
		})
		api, err := server.New(&server.Mode{State: route.Blank, Handlers: handlers,
			Certificate: func() (*tls.Certificate, error) { return certificate, nil }}, server.DefaultLimits(), slog.New(slog.NewTextHandler(io.Discard, nil)))
		if err != nil {
			t.Fatal(err)
		}
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- api.Serve(ctx, listener) }()
		s.wantError(want, "node", "enroll", listener.Addr().String(), code.Text(), "home-1")
		cancel()
		<-ended
	}
	if n := s.registry().Nodes; len(n) != 0 {
		t.Errorf("the registry has %+v", n)
	}
}

// loseRegistry enrolls a node as home-1, publishes three more lists, and puts the
// registry back to what it was before those.
func (s *trial) loseRegistry(node *lifecycletest.Node) {
	t := s.t
	t.Helper()
	s.want(0, "node", "enroll", node.Address, node.EnrollmentCode(), "home-1")
	undo := s.snapshot()
	for i := range 3 {
		name := fmt.Sprintf("web-%d", i)
		s.want(0, "node", "provision", name, filepath.Join(t.TempDir(), name))
	}
	undo()
	if got := s.registry().Membership; got != 1 {
		t.Fatalf("the registry is at %d", got)
	}
}

func TestProvision(t *testing.T) {
	s := newNodes(t)
	file := filepath.Join(t.TempDir(), "web-1.join")
	s.want(0, "node", "provision", "web-1", file)
	n, err := s.registry().Find("web-1")
	if err != nil {
		t.Fatal(err)
	}
	s.wantStdout(fmt.Sprintf(`provisioned node web-1 (%[1]s)
mesh membership: 1 node (serial 1)
NODE   MEMBERSHIP
web-1  no address yet (it will get it from a mesh peer)
join bundle written to %[2]s. Give it to the machine as user data:
  AWS:    aws ec2 run-instances --user-data file://%[2]s ...
  GCP:    gcloud compute instances create --metadata-from-file user-data=%[2]s ...
  Azure:  az vm create --user-data %[2]s ...
  QEMU:   -fw_cfg name=opt/powercloud/join,file=%[2]s
It holds the node's private keys and disk key: delete the file once the node is up, and the user data too where the provider allows it.
Once the node is up, tell pcctl where it is: pcctl --repo ... node addr web-1 HOST[:PORT]
`, n.ID, file))
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s.wantError("file already exists", "node", "provision", "web-2", file)
	s.wantError(`a node named "web-1" is already enrolled`, "node", "provision", "web-1", file+"2")

	node := lifecycletest.Start(t, newVolume(t), given(text))
	node.IsMember()
	if !strings.Contains(node.Log.String(), "joined the cluster with a join bundle") {
		t.Error(node.Log)
	}
	s.want(0, "node", "addr", "web-1", node.Address)
	s.wantStdout(fmt.Sprintf("node web-1 is at %s\nmesh endpoint of web-1 set to 127.0.0.1:51820\nmesh membership: 1 node (serial 2)\nNODE   MEMBERSHIP\nweb-1  serial 2\n", node.Address))
	s.wantNode("web-1")
	s.want(0, "node", "rm", "--erase", "web-1")
	if action := <-node.Power; action != "poweroff" {
		t.Errorf("the node was asked to %s", action)
	}
}

// TestProvisionWithoutRoom: no part of a bundle stays, and no node is registered.
func TestProvisionWithoutRoom(t *testing.T) {
	s := newNodes(t)
	folder := t.TempDir()
	file := filepath.Join(folder, "missing", "web-1.join")
	s.wantError("write the join bundle", "node", "provision", "web-1", file)
	if _, err := os.Stat(filepath.Dir(file)); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if r := s.registry(); len(r.Nodes) != 0 || len(r.Revoked.Nodes) != 1 {
		t.Errorf("the registry has %+v", r)
	}
	s.want(0, "node", "provision", "web-1", filepath.Join(folder, "web-1.join"))
}

func TestRemove(t *testing.T) {
	s := newNodes(t)
	node := lifecycletest.Start(t, newVolume(t), nil)
	c := newCable(t, node.Address)
	at := c.listener.Addr().String()
	s.want(0, "node", "enroll", at, node.EnrollmentCode(), "home-1")
	c.cutAt(1, before, nil)
	s.wantError("nothing is removed", "node", "rm", "--erase", "home-1")
	if len(s.registry().Nodes) != 1 {
		t.Errorf("the registry has %+v", s.registry().Nodes)
	}
	// Without --erase it can be removed all the same.
	s.want(0, "node", "rm", "home-1")
	if r := s.registry(); len(r.Nodes) != 0 || len(r.Revoked.Nodes) != 1 {
		t.Errorf("the registry has %+v", r)
	}
}

// TestRemoveCutOff: pcctl ends before it has told the nodes.
func TestRemoveCutOff(t *testing.T) {
	s := newNodes(t)
	stays, goes := lifecycletest.Start(t, newVolume(t), nil), lifecycletest.Start(t, newVolume(t), nil)
	c := newCable(t, stays.Address)
	s.want(0, "node", "enroll", c.listener.Addr().String(), stays.EnrollmentCode(), "stays")
	s.want(0, "node", "enroll", goes.Address, goes.EnrollmentCode(), "goes")
	ctx, cancel := context.WithCancel(t.Context())
	c.cutAt(1, before, cancel)
	if s.run(ctx, "node", "rm", "goes") == 0 {
		t.Fatal("it was not cut off")
	}
	c.cutAt(0, before, nil)
	s.want(0, "node", "rm", "goes")
	if got := s.stdout.String(); !strings.HasSuffix(got, "stays  serial 2\n") {
		t.Errorf("%s", got)
	}
	s.want(0, "node", "ls", "--json")
	if strings.Contains(s.stdout.String(), "goes") {
		t.Error(s.stdout.String())
	}
}

func TestUnlock(t *testing.T) {
	s := newNodes(t)
	volume := newVolume(t)
	node := lifecycletest.Start(t, volume, nil)
	s.want(0, "node", "enroll", node.Address, node.EnrollmentCode(), "home-1")
	if err := node.Stop(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	volume.Lock()
	node = lifecycletest.Start(t, volume, nil)
	code := node.UnlockCode()
	c := newCable(t, node.Address)
	at := c.listener.Addr().String()
	s.wantError("pcctl: node key does not match the unlock code\n", "node", "unlock", "home-1", strings.Repeat("A", len(strings.ReplaceAll(code, "-", ""))), at)
	s.want(2, "node", "unlock", "home-1", "AAAA", at)
	// The answer is lost; the node is open, which is all that was wanted.
	c.cutAt(2, answerLost, nil)
	s.want(1, "node", "unlock", "home-1", code, at)
	node.IsMember()
	c.cutAt(0, before, nil)
	s.want(0, "node", "unlock", "home-1", code, at)
	s.wantStdout("node home-1 unlocked\n")
	s.want(0, "node", "addr", "home-1", node.Address)
	s.wantNode("home-1")

	// A forged header says that it is another node.
	volume.Lock()
	if err := node.Stop(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	other := lifecycletest.Start(t, newVolume(t), nil)
	s.want(0, "node", "enroll", other.Address, other.EnrollmentCode(), "colo-1")
	node = lifecycletest.Start(t, volume, nil)
	s.wantError("it says that it is node", "node", "unlock", "colo-1", node.UnlockCode(), node.Address)
	s.want(0, "node", "unlock", "home-1", node.UnlockCode(), node.Address)
	s.wantStdout("node home-1 unlocked\n")
}
