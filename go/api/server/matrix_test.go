package server

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/api/proof"
	"powercloud.unidatum.com/go/api/route"
	"powercloud.unidatum.com/go/cluster/revocation"
	"powercloud.unidatum.com/go/keys/keystest"
	"powercloud.unidatum.com/go/pki"
)

// ask sends a request of a route, or another method, path and body, over a connection
// of its own. The proof is that of a code if there is one.
func ask(address string, certificate *tls.Certificate, code *proof.Code, method, path string, body []byte) (status int, answer []byte, err error) {
	config := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}}
	if certificate != nil {
		config.Certificates = []tls.Certificate{*certificate}
	}
	conn, err := tls.Dial("tcp", address, config)
	if err != nil {
		return 0, nil, err
	}
	defer conn.Close()
	r, err := http.NewRequest(method, "https://node"+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if code != nil {
		state := conn.ConnectionState()
		binding, err := proof.Binding(&state)
		if err != nil {
			return 0, nil, err
		}
		mac, err := code.MAC(binding, path, body)
		if err != nil {
			return 0, nil, err
		}
		r.Header.Set(proof.Header, hex.EncodeToString(mac))
	}
	transport := &http.Transport{DisableKeepAlives: true, DialTLSContext: dialed(conn)}
	response, err := transport.RoundTrip(r)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}

// code returns the code of an error that was answered.
func code(t *testing.T, answer []byte) string {
	t.Helper()
	var e message.Error
	if err := message.Decode(answer, &e, true); err != nil || e.Text == "" {
		t.Errorf("the answer %q is no error: %v", answer, err)
	}
	return e.Code
}

// example returns a request that can be read.
func example(r route.Route) []byte {
	switch {
	case r.MaxRequest == 0:
		return nil
	case r.Name == route.Enroll().Name || r.Name == route.Unlock().Name:
		return []byte(`{"volume":"000102030405060708090a0b0c0d0e0f"}`)
	}
	return []byte("{}")
}

// callers are all kinds of them, by what is wrong with them.
func callers(c, other *cluster, revoked *revocation.List) map[string]*tls.Certificate {
	t := c.t
	self, err := SelfSigned(newKey(t), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	oldAdmin, oldNode := c.admin(now().Add(-2*time.Hour)), c.node(now().Add(-time.Hour))
	*revoked = revoked.WithAdmins(now().Add(-time.Hour)).WithNode(nodeID(t, oldNode))
	foreign := other.admin(now())
	chain := c.admin(now())
	chain.Certificate = append(chain.Certificate, c.ca.Authority().Certificate().Raw)
	return map[string]*tls.Certificate{
		"admin": c.admin(now()), "node": c.node(now()),
		"nobody": nil, "self-signed": self, "another cluster's admin": foreign, "another cluster's node": other.node(now()),
		"expired admin": c.admin(now().Add(-pki.AdminLifetime - time.Minute)), "expired node": c.node(now().Add(-pki.NodeLifetime - time.Minute)),
		"admin of the future": c.admin(now().Add(3 * time.Hour)),
		"revoked admin":       oldAdmin, "revoked node": oldNode, "two certificates": chain,
	}
}

func nodeID(t testing.TB, certificate *tls.Certificate) pki.NodeID {
	t.Helper()
	id, err := pki.NodeIDOf(certificate.PrivateKey.(ed25519.PrivateKey).Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestEveryRouteAsEverybody asks for everything in every state, as everybody.
func TestEveryRouteAsEverybody(t *testing.T) {
	c, other := newCluster(t, keystest.First(t)), newCluster(t, keystest.Second(t))
	revoked := new(revocation.List)
	all := callers(c, other, revoked)
	for state, mode := range modes(t, c, revoked) {
		_, address := start(t, mode, DefaultLimits())
		for _, r := range route.All() {
			for who, certificate := range all {
				t.Run(state.String()+"/"+r.Name+"/"+who, func(t *testing.T) {
					status, answer, err := ask(address, certificate, secretCode(), r.Method, r.Path, example(r))
					allowed := r.Callers == route.Anyone || who == "admin" && r.Callers&route.Admins != 0 || who == "node" && r.Callers&route.Nodes != 0
					member := who == "admin" || who == "node"
					switch {
					case state == route.Open && !member:
						// TLS 1.3 has the client learn it when it reads.
						if err == nil {
							t.Errorf("somebody who is no member got %d %q", status, answer)
						}
					case err != nil:
						t.Error(err)
					case r.State != state:
						if status != http.StatusConflict || code(t, answer) != message.CodeState {
							t.Errorf("in another state: %d %q", status, answer)
						}
					case !allowed:
						if status != http.StatusForbidden || code(t, answer) != message.CodeDenied {
							t.Errorf("who may not ask: %d %q", status, answer)
						}
					case status != http.StatusOK:
						t.Errorf("who may ask: %d %q", status, answer)
					}
				})
			}
		}
	}
}

// TestProof asks a blank node with proofs that are none.
func TestProof(t *testing.T) {
	c := newCluster(t, keystest.First(t))
	_, address := start(t, modes(t, c, new(revocation.List))[route.Blank], DefaultLimits())
	offer := route.GetOffer()
	wrong := secretCode()
	wrong.Secret[9] ^= 1
	status, answer, err := ask(address, nil, wrong, offer.Method, offer.Path, []byte("{}"))
	if err != nil || status != http.StatusConflict || code(t, answer) != message.CodeProof {
		t.Errorf("another code: %d %q, %v", status, answer, err)
	}
	status, answer, err = ask(address, nil, nil, offer.Method, offer.Path, []byte("{}"))
	if err != nil || status != http.StatusConflict || code(t, answer) != message.CodeProof {
		t.Errorf("no proof: %d %q, %v", status, answer, err)
	}
	// What was sent over one connection is sent again over another.
	replay := func(conn *tls.Conn, mac []byte) (int, []byte) {
		r, err := http.NewRequest(offer.Method, "https://node"+offer.Path, bytes.NewReader([]byte("{}")))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(proof.Header, hex.EncodeToString(mac))
		response, err := (&http.Transport{DisableKeepAlives: true, DialTLSContext: dialed(conn)}).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, text
	}
	var conns []*tls.Conn
	for range 2 {
		conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	first := conns[0].ConnectionState()
	binding, err := proof.Binding(&first)
	if err != nil {
		t.Fatal(err)
	}
	mac, err := secretCode().MAC(binding, offer.Path, []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if status, answer := replay(conns[0], mac); status != http.StatusOK {
		t.Errorf("the first time: %d %q", status, answer)
	}
	if status, answer := replay(conns[1], mac); status != http.StatusConflict || code(t, answer) != message.CodeProof {
		t.Errorf("again over another connection: %d %q", status, answer)
	}
}

// TestRevokedMeanwhile revokes an admin whose connection is open.
func TestRevokedMeanwhile(t *testing.T) {
	c := newCluster(t, keystest.First(t))
	revoked := new(revocation.List)
	_, address := start(t, modes(t, c, revoked)[route.Open], DefaultLimits())
	config := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}, Certificates: []tls.Certificate{*c.admin(now())}}
	transport := &http.Transport{TLSClientConfig: config, MaxConnsPerHost: 1}
	defer transport.CloseIdleConnections()
	for _, want := range []int{http.StatusOK, http.StatusForbidden} {
		r, err := http.NewRequest(http.MethodGet, "https://"+address+route.GetInfo().Path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != want {
			t.Errorf("%d, want %d (%v)", response.StatusCode, want, err)
		}
		response.Body.Close()
		*revoked = revoked.WithAdmins(now().Add(time.Minute))
	}
}

// TestOldTLS connects with an older version.
func TestOldTLS(t *testing.T) {
	c := newCluster(t, keystest.First(t))
	for _, mode := range modes(t, c, new(revocation.List)) {
		_, address := start(t, mode, DefaultLimits())
		_, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*c.admin(now())}})
		var alert tls.AlertError
		if !errors.As(err, &alert) && err == nil {
			t.Errorf("%s: TLS 1.2 gave %v", mode.State, err)
		}
	}
}

// TestRequests sends what no client sends.
func TestRequests(t *testing.T) {
	c := newCluster(t, keystest.First(t))
	_, address := start(t, modes(t, c, new(revocation.List))[route.Open], DefaultLimits())
	admin := c.admin(now())
	power, info := route.Power(), route.GetInfo()
	for name, test := range map[string]struct {
		method, path string
		body         []byte
		status       int
	}{
		"another method":   {http.MethodGet, power.Path, nil, http.StatusNotFound},
		"another path":     {info.Method, "/v1/../v1/info", nil, http.StatusNotFound},
		"no path":          {info.Method, "/", nil, http.StatusNotFound},
		"an unasked body":  {info.Method, info.Path, []byte("{}"), http.StatusRequestEntityTooLarge},
		"unknown member":   {power.Method, power.Path, []byte(`{"action":"reboot","when":1}`), http.StatusConflict},
		"something behind": {power.Method, power.Path, []byte(`{"action":"reboot"}{}`), http.StatusConflict},
		"no JSON":          {power.Method, power.Path, []byte("reboot"), http.StatusConflict},
		"too large":        {power.Method, power.Path, bytes.Repeat([]byte{' '}, int(power.MaxRequest)+1), http.StatusRequestEntityTooLarge},
	} {
		status, answer, err := ask(address, admin, nil, test.method, test.path, test.body)
		if err != nil || status != test.status {
			t.Errorf("%s: %d %q, want %d (%v)", name, status, answer, test.status, err)
		}
	}
}
