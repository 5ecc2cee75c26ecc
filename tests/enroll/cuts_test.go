package enroll

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	mathrand "math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/go/admin/credentials"
	"powercloud.unidatum.com/go/admin/nodelist"
	"powercloud.unidatum.com/go/api/client"
	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/api/route"
	"powercloud.unidatum.com/go/cluster/address"
	"powercloud.unidatum.com/go/pki"
	"powercloud.unidatum.com/tests/admin"
	"powercloud.unidatum.com/tests/machine"
	"powercloud.unidatum.com/tests/node"
)

// within returns a random time up to a longest one.
func within(longest time.Duration) time.Duration {
	return time.Duration(mathrand.Int64N(int64(longest)))
}

// pull pulls the plug after a time, or when something has ended before.
func pull(t *testing.T, m *machine.Machine, after time.Duration, ended <-chan struct{}) {
	t.Helper()
	began := time.Now()
	select {
	case <-ended:
	case <-time.After(after):
	}
	m.PowerOff()
	t.Logf("the power was cut after %v", time.Since(began))
}

// returned waits until a node that was switched on again says what it is: "locked", or
// "waiting to be enrolled".
func returned(ctx context.Context, m *machine.Machine) string {
	return m.Expect(ctx, connected+`PowerCloud node (home-1 )?\(?[0-9a-f]{16}\)? is (waiting to be enrolled|locked)`)[2]
}

// cuts is how often the power is cut in TestCutEnrollment.
const cuts = 3

// TestCutEnrollment pulls the plug at a random moment of an enrollment. The node is blank
// then, and can be enrolled again under its name, or it is locked, and can be unlocked.
func TestCutEnrollment(t *testing.T) {
	for i := range cuts {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			ctx := machine.Patient(t)
			a := admin.New(ctx, t)
			m := machine.Start(ctx, t, blank(t))
			node.ExpectBanner(ctx, m)
			ended := a.Begin(ctx, "node", "enroll", m.Address(ctx, port), node.Code(ctx, m, "enrollment"), name)
			// From the passphrase to the answer it takes a few seconds.
			pull(t, m, within(4*time.Second), ended)
			<-ended

			m.PowerOn(ctx)
			m.Expect(ctx, `pcinit begins`)
			if returned(ctx, m) == "locked" {
				at := m.Address(ctx, port)
				if output := a.Unlocked(ctx, "node", "unlock", name, node.Code(ctx, m, "unlock"), at); !strings.HasPrefix(output, "node home-1 unlocked\n") {
					t.Errorf("node unlock printed %q", output)
				}
				a.Unlocked(ctx, "node", "addr", name, at)
			} else {
				// What may have been entered of the first try, as an admin is told to do.
				<-a.Begin(ctx, "node", "rm", name)
				a.Unlocked(ctx, "node", "enroll", m.Address(ctx, port), node.Code(ctx, m, "enrollment"), name)
			}
			if got := info(ctx, a); got["name"] != name {
				t.Errorf("node info printed %v", got)
			}
		})
	}
}

// A member is a node that was enrolled, and whose plug is pulled again and again.
type member struct {
	*machine.Machine
	t     *testing.T
	admin *admin.Admin
	// was is what the node said of itself when it was enrolled.
	was map[string]string
}

// newMember enrolls a node.
func newMember(t *testing.T) *member {
	t.Helper()
	ctx := machine.Patient(t)
	m := &member{t: t, admin: admin.New(ctx, t), Machine: machine.Start(ctx, t, blank(t))}
	enroll(ctx, t, m.Machine, m.admin)
	m.was = info(ctx, m.admin)
	return m
}

// start switches the node on, which must be locked then, and returns its code.
func (m *member) start(ctx context.Context) string {
	m.t.Helper()
	m.PowerOn(ctx)
	// What it said before the cut doesn't count.
	m.Expect(ctx, `pcinit begins`)
	if state := returned(ctx, m.Machine); state != "locked" {
		m.t.Fatalf("after a cut the node is %s", state)
	}
	return node.Code(ctx, m.Machine, "unlock")
}

// open unlocks the node, which must be the one that it was, and returns what it says of
// itself.
func (m *member) open(ctx context.Context, code string) map[string]string {
	m.t.Helper()
	at := m.Address(ctx, port)
	if output := m.admin.Unlocked(ctx, "node", "unlock", name, code, at); output != "node home-1 unlocked\n" {
		m.t.Errorf("node unlock printed %q", output)
	}
	m.admin.Unlocked(ctx, "node", "addr", name, at)
	now := info(ctx, m.admin)
	for _, label := range []string{"name", "id", "cluster"} {
		if m.was[label] == "" || now[label] != m.was[label] {
			m.t.Errorf("the node's %s was %q and is %q", label, m.was[label], now[label])
		}
	}
	return now
}

// unlocked is what the console shows once the volume is open, and before the API is.
const unlocked = `the state volume is unlocked`

// TestCutUnlock pulls the plug at random moments of an unlock, and at the one when the
// volume has just been opened. The node is locked again then, and can be unlocked.
func TestCutUnlock(t *testing.T) {
	m := newMember(t)
	m.PowerOff()
	for i := range 3 {
		ctx := machine.Patient(t)
		shown := m.start(ctx)
		ended := m.admin.Begin(ctx, "node", "unlock", name, shown, m.Address(ctx, port))
		if i < 2 {
			pull(t, m.Machine, within(3*time.Second), ended)
		} else {
			m.Expect(ctx, unlocked)
			m.PowerOff()
		}
		<-ended
	}
	ctx := machine.Patient(t)
	if now := m.open(ctx, m.start(ctx)); now["certificate"] != m.was["certificate"] {
		t.Errorf("the certificate was %q and is %q", m.was["certificate"], now["certificate"])
	}
}

// TestCutGrowth makes a node's disk larger, from 1 GiB to 8, and pulls the plug around
// each growth: while the node starts and makes its partition larger, when it has opened
// the volume there for the first time, and while it fills it.
func TestCutGrowth(t *testing.T) {
	m := newMember(t)
	ctx := machine.Patient(t)
	for _, gibibytes := range []int64{2, 4} {
		m.PowerOff()
		m.Enlarge(0, gibibytes<<30)
		m.PowerOn(ctx)
		m.Expect(ctx, `pcinit begins`)
		pull(t, m.Machine, within(2*time.Second), nil)
	}
	m.Enlarge(0, 8<<30)
	shown := m.start(ctx)
	ended := m.admin.Begin(ctx, "node", "unlock", name, shown, m.Address(ctx, port))
	m.Expect(ctx, unlocked)
	m.PowerOff()
	<-ended

	ctx = machine.Patient(t)
	now := m.open(ctx, m.start(ctx))
	if got := size(t, now); got < 7000 {
		t.Errorf("on a disk of 8 GiB the volume has %d MiB", got)
	}
	first := m.filled(ctx)
	far := first
	for far < first+step && far < 7000*mebibyte {
		far = m.filled(ctx)
	}
	m.PowerOff()
	now = m.open(ctx, m.start(ctx))
	if got := m.filled(ctx); got <= first || size(t, now) < 7000 {
		t.Errorf("%d bytes were filled, then %d, and after a cut %d", first, far, got)
	}
	if now["certificate"] != m.was["certificate"] {
		t.Errorf("the certificate was %q and is %q", m.was["certificate"], now["certificate"])
	}
}

// step is by how many bytes the file system grows at once, at most: so much that was
// filled is filled again after a cut.
const step = 2 * 128 * mebibyte

// filled returns how many bytes of the volume have been filled.
func (m *member) filled(ctx context.Context) int64 {
	m.t.Helper()
	c := m.client(ctx)
	defer c.Close()
	answer, err := client.Do(ctx, c, route.GetInfo(), nil)
	if err != nil {
		m.t.Fatal(err)
	}
	if answer.State.Filling == nil {
		return answer.State.Size
	}
	return answer.State.Filling.Filled
}

// client returns what asks the node by the admin's certificate.
func (m *member) client(ctx context.Context) *client.Client {
	m.t.Helper()
	own, known := m.credentials()
	at, err := address.Parse(m.Address(ctx, port), port)
	if err != nil {
		m.t.Fatal(err)
	}
	return client.New(client.Peer{Address: at, Authority: own.Authority, ID: known.ID}, own.TLS(), time.Now)
}

func (m *member) credentials() (*credentials.Credentials, nodelist.Node) {
	m.t.Helper()
	own, err := credentials.Load(m.admin.Directory())
	if err != nil {
		m.t.Fatal(err)
	}
	list, err := nodelist.Load(m.admin.Directory())
	if err != nil {
		m.t.Fatal(err)
	}
	known, err := list.Find(own.Authority.Cluster(), name)
	if err != nil {
		m.t.Fatal(err)
	}
	return own, known
}

// certificate returns the one that the node shows.
func (m *member) certificate(ctx context.Context) *x509.Certificate {
	m.t.Helper()
	own, _ := m.credentials()
	// Whose it is doesn't matter here: only what it is.
	dialer := tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true, Certificates: []tls.Certificate{*own.TLS()}}}
	connection, err := dialer.DialContext(ctx, "tcp", m.Address(ctx, port))
	if err != nil {
		m.t.Fatal(err)
	}
	defer connection.Close()
	return connection.(*tls.Conn).ConnectionState().PeerCertificates[0]
}

// TestCutCertificate pulls the plug while the node gets one new certificate after the
// other. Then it has the last that it said it had taken, or the one after that.
func TestCutCertificate(t *testing.T) {
	m := newMember(t)
	ctx := machine.Patient(t)
	ca := m.admin.CA(ctx)
	for range 2 {
		r := &renewal{ca: ca, client: m.client(ctx), last: m.certificate(ctx), ended: make(chan struct{})}
		go r.run(ctx)
		pull(t, m.Machine, within(time.Second), nil)
		<-r.ended
		r.client.Close()
		if r.err != nil {
			t.Fatal(r.err)
		}
		t.Logf("it had taken %d certificates", r.taken)
		ctx = machine.Patient(t)
		m.open(ctx, m.start(ctx))
		if now := m.certificate(ctx); !bytes.Equal(now.Raw, r.last.Raw) && !bytes.Equal(now.Raw, r.next.Raw) {
			t.Errorf("the node has the certificate %v and not %v, which it took, or %v", now.SerialNumber, r.last.SerialNumber, r.next.SerialNumber)
		}
	}
}

// renewal gives a node new certificates until it doesn't answer any more.
type renewal struct {
	ca     *pki.CA
	client *client.Client
	// last is the one that it took last, and next the one that it was given after that.
	last, next *x509.Certificate
	taken      int
	err        error
	ended      chan struct{}
}

func (r *renewal) run(ctx context.Context) {
	defer close(r.ended)
	key, ok := r.last.PublicKey.(ed25519.PublicKey)
	if !ok {
		r.err = fmt.Errorf("the node's key is a %T", r.last.PublicKey)
		return
	}
	for {
		if r.next, r.err = r.ca.IssueNode(key, time.Now().UTC().Truncate(time.Second), pki.NodeLifetime, rand.Reader); r.err != nil {
			return
		}
		_, err := client.Do(ctx, r.client, route.PutCertificate(), &message.Certificate{Certificate: r.next.Raw})
		if err != nil {
			return
		}
		r.last = r.next
		r.taken++
	}
}
