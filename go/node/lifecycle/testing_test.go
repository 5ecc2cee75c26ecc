package lifecycle_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"testing"
	"time"

	"powercloud.unidatum.com/go/api/client"
	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/api/proof"
	"powercloud.unidatum.com/go/api/route"
	"powercloud.unidatum.com/go/cluster/address"
	"powercloud.unidatum.com/go/cluster/joinbundle"
	"powercloud.unidatum.com/go/cluster/membership"
	"powercloud.unidatum.com/go/cluster/revocation"
	"powercloud.unidatum.com/go/cluster/volumeid"
	"powercloud.unidatum.com/go/keys/keystest"
	"powercloud.unidatum.com/go/node/lifecycle/lifecycletest"
	"powercloud.unidatum.com/go/node/state/statetest"
	"powercloud.unidatum.com/go/pki"
	"powercloud.unidatum.com/go/pki/document"
)

// cluster has what an admin has of one.
type cluster struct {
	testing.TB
	ca *pki.CA
	// issued is when its certificates are issued.
	issued time.Time
	admin  *tls.Certificate
}

func newCluster(t testing.TB, c keystest.Cluster) *cluster {
	t.Helper()
	ca, err := pki.NewCA(c.Root(t), c.ID)
	if err != nil {
		t.Fatal(err)
	}
	k := &cluster{TB: t, ca: ca, issued: time.Now().UTC().Truncate(time.Second)}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := ca.IssueAdmin(public, k.issued, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	k.admin = &tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: private}
	return k
}

func (k *cluster) node(key ed25519.PublicKey, issued time.Time) *x509.Certificate {
	k.Helper()
	certificate, err := k.ca.IssueNode(key, issued, pki.NodeLifetime, rand.Reader)
	if err != nil {
		k.Fatal(err)
	}
	return certificate
}

func (k *cluster) sign(kind document.Kind, serial uint64, body []byte, err error) *message.Document {
	k.Helper()
	if err != nil {
		k.Fatal(err)
	}
	d, err := document.Sign(k.ca, kind, serial, body)
	if err != nil {
		k.Fatal(err)
	}
	return &message.Document{Signed: d.Signed()}
}

func (k *cluster) members(serial uint64, nodes ...membership.Node) *message.Document {
	k.Helper()
	body, err := membership.List{Nodes: nodes}.Normalized().Encode()
	return k.sign(document.Membership, serial, body, err)
}

func (k *cluster) revoked(serial uint64, list revocation.List) *message.Document {
	k.Helper()
	body, err := list.Normalized().Encode()
	return k.sign(document.Revocations, serial, body, err)
}

// member returns an admin's client for a node.
func (k *cluster) member(n *lifecycletest.Node, id pki.NodeID) *client.Client {
	k.Helper()
	peer := client.Peer{Address: parse(k, n.Address), Authority: k.ca.Authority(), ID: id}
	c := client.New(peer, k.admin, func() time.Time { return k.issued })
	k.Cleanup(c.Close)
	return c
}

func parse(t testing.TB, text string) address.Address {
	t.Helper()
	a, err := address.Parse(text, 0)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// ask asks a node that is known by the code on its console.
func ask[Request, Answer any](t testing.TB, n *lifecycletest.Node, call route.Call[Request, Answer], request *Request) (*Answer, error) {
	t.Helper()
	code, err := proof.ParseCode(n.EnrollmentCode())
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.Pinned(t.Context(), parse(t, n.Address), code.Fingerprint, &code)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return client.Do(t.Context(), c, call, request)
}

// volumeKey is the key of the volumes of these tests.
func volumeKey() message.Key { return message.Key{7} }

// enroll enrolls a node, and returns its ID.
func (k *cluster) enroll(n *lifecycletest.Node) (pki.NodeID, error) {
	k.Helper()
	offer, err := ask(k, n, route.GetOffer(), new(message.None))
	if err != nil {
		return pki.NodeID{}, err
	}
	_, err = ask(k, n, route.Enroll(), &message.Enrollment{
		Name: "home-1", Authority: k.ca.Authority().Certificate().Raw, Certificate: k.node(offer.Key, k.issued).Raw,
		Volume: volumeid.ID{1}, VolumeKey: volumeKey(),
	})
	return offer.ID, err
}

// open returns a node that is open, and an admin's client for it.
func (k *cluster) open() (*lifecycletest.Node, *client.Client, pki.NodeID) {
	k.Helper()
	n := lifecycletest.Start(k, newVolume(k), nil)
	id, err := k.enroll(n)
	if err != nil {
		k.Fatal(err)
	}
	return n, k.member(n, id), id
}

func newVolume(t testing.TB) *statetest.Volume { return &statetest.Volume{Folder: t.TempDir()} }

// do asks a node something that it must answer.
func do[Request, Answer any](t testing.TB, c *client.Client, call route.Call[Request, Answer], request *Request) *Answer {
	t.Helper()
	answer, err := client.Do(t.Context(), c, call, request)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// wantCode asks a node something that it must refuse with a code.
func wantCode[Request, Answer any](t testing.TB, code string, c *client.Client, call route.Call[Request, Answer], request *Request) {
	t.Helper()
	if _, err := client.Do(t.Context(), c, call, request); !message.HasCode(err, code) {
		t.Errorf("%s: %v", call.Name, err)
	}
}

// bundle returns a join bundle, whose authority may be another cluster's.
func (k *cluster) bundle(authority *cluster) *joinbundle.Bundle {
	k.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		k.Fatal(err)
	}
	id, err := pki.NodeIDOf(public)
	if err != nil {
		k.Fatal(err)
	}
	return &joinbundle.Bundle{
		NodeKey: joinbundle.Key(private.Seed()), NodeCertificate: k.node(public, k.issued).Raw, CACertificate: authority.ca.Authority().Certificate().Raw,
		WireGuardKey: joinbundle.Key{9}, VolumeID: volumeid.ID{1}, VolumeKey: joinbundle.Key(volumeKey()),
		Membership: k.members(1, membership.Node{Name: "web-1", ID: id}).Signed, Revocations: k.revoked(1, revocation.List{}).Signed,
	}
}

// stopped checks that a node has ended because it was told to.
func stopped(t testing.TB, n *lifecycletest.Node) {
	t.Helper()
	if err := n.Stop(); !errors.Is(err, context.Canceled) {
		t.Errorf("the node ended with %v", err)
	}
}

func parseCertificate(t testing.TB, der []byte) *x509.Certificate {
	t.Helper()
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// laterAdmin returns an admin's certificate of the cluster's own time.
func laterAdmin(t testing.TB, k *cluster) *tls.Certificate {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := k.ca.IssueAdmin(public, k.issued, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: private}
}
