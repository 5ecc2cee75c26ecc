package proof

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// vector is one of testdata/proof-v1.json, which another implementation has made.
type vector struct {
	Fingerprint, Secret, Code, Key, Binding, Path, Body, MAC string
}

func vectors(t testing.TB) []vector {
	t.Helper()
	text, err := os.ReadFile("testdata/proof-v1.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []vector
	if err := json.Unmarshal(text, &all); err != nil || len(all) == 0 {
		t.Fatalf("%d vectors, %v", len(all), err)
	}
	return all
}

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestGolden(t *testing.T) {
	for _, v := range vectors(t) {
		c, err := ParseCode(v.Code)
		if err != nil || hex.EncodeToString(c.Fingerprint[:]) != v.Fingerprint || hex.EncodeToString(c.Secret[:]) != v.Secret {
			t.Errorf("%s: %x %x, %v", v.Code, c.Fingerprint[:], c.Secret[:], err)
		}
		if got := c.Text(); got != v.Code {
			t.Errorf("%s is written %s", v.Code, got)
		}
		if key, err := c.key(); err != nil || hex.EncodeToString(key) != v.Key {
			t.Errorf("%s: the key is %x, %v", v.Code, key, err)
		}
		mac, err := c.MAC(unhex(t, v.Binding), v.Path, unhex(t, v.Body))
		if err != nil || hex.EncodeToString(mac) != v.MAC {
			t.Errorf("%s: the MAC is %x, %v", v.Code, mac, err)
		}
	}
}

// TestCheck changes everything that a MAC is of.
func TestCheck(t *testing.T) {
	for _, v := range vectors(t) {
		c, err := ParseCode(v.Code)
		if err != nil {
			t.Fatal(err)
		}
		mac, binding, body := unhex(t, v.MAC), unhex(t, v.Binding), unhex(t, v.Body)
		if !c.Check(mac, binding, v.Path, body) {
			t.Errorf("%s: the MAC isn't accepted", v.Code)
		}
		flip := func(b []byte) []byte {
			b = bytes.Clone(b)
			b[len(b)-1] ^= 1
			return b
		}
		secret, fingerprint := c, c
		secret.Secret[0] ^= 1
		fingerprint.Fingerprint[0] ^= 1
		for name, accepted := range map[string]bool{
			"another secret":      secret.Check(mac, binding, v.Path, body),
			"another fingerprint": fingerprint.Check(mac, binding, v.Path, body),
			"another MAC":         c.Check(flip(mac), binding, v.Path, body),
			"a shorter MAC":       c.Check(mac[:len(mac)-1], binding, v.Path, body),
			"a longer MAC":        c.Check(append(bytes.Clone(mac), 0), binding, v.Path, body),
			"no MAC":              c.Check(nil, binding, v.Path, body),
			"another binding":     c.Check(mac, flip(binding), v.Path, body),
			"another path":        c.Check(mac, binding, v.Path+"x", body),
			"another body":        c.Check(mac, binding, v.Path, append(bytes.Clone(body), ' ')),
			"a body in the path":  c.Check(mac, binding, v.Path+"\x00"+string(body), nil),
		} {
			if accepted {
				t.Errorf("%s: %s is accepted", v.Code, name)
			}
		}
	}
}

func TestParseCode(t *testing.T) {
	const code = "AAAQ-EAYE-AUDA-OCAJ-BIFQ-YDIO-B4IB-CEQT"
	want, err := ParseCode(code)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{strings.ToLower(code), strings.ReplaceAll(code, "-", ""), strings.ReplaceAll(code, "-", " ") + "\r\n",
		strings.ReplaceAll(code, "-", "\u2013"), strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(code, "O", "0"), "I", "1"), "B", "8")} {
		if got, err := ParseCode(text); err != nil || got != want {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"", code[:len(code)-1], code + "A", code[:len(code)/2], code + code, strings.Replace(code, "T", "9", 1),
		strings.Replace(code, "T", "=", 1), code + "\x00"} {
		got, err := ParseCode(text)
		if err == nil || got != (Code{}) {
			t.Errorf("%q was read", text)
		}
		if err != nil && strings.Contains(err.Error(), "AAAQ") {
			t.Errorf("the error %v shows the code", err)
		}
	}
}

// TestSecretIsNotShown prints a code in every way but Text.
func TestSecretIsNotShown(t *testing.T) {
	c := Code{}
	for i := range c.Secret {
		c.Fingerprint[i], c.Secret[i] = 0xa7, 0xa7
	}
	var shown bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o", "%b", "%t"} {
		for _, v := range []any{c, &c, []Code{c}, struct{ C Code }{c}, &struct{ C Code }{c}} {
			fmt.Fprintf(&shown, verb+"\n", v)
		}
	}
	for _, handler := range []slog.Handler{slog.NewTextHandler(&shown, nil), slog.NewJSONHandler(&shown, nil)} {
		slog.New(handler).Info("a", "code", c, "pointer", &c)
	}
	for _, secret := range []string{"a7a7", "A7A7", "167", "0247", "247 247", "10100111", "U6T2", "\xa7"} {
		if strings.Contains(shown.String(), secret) {
			t.Errorf("%q is shown in %s", secret, shown.String())
		}
	}
	c.Wipe()
	if c.Secret != [SecretSize]byte{} {
		t.Error("the secret is left")
	}
}

// TestBinding has two ends of a connection agree on what no other connection has.
func TestBinding(t *testing.T) {
	first, second := bindings(t), bindings(t)
	if len(first[0]) != 32 || !bytes.Equal(first[0], first[1]) || !bytes.Equal(second[0], second[1]) {
		t.Errorf("the ends have %x and %x", first, second)
	}
	if bytes.Equal(first[0], second[0]) {
		t.Error("two connections have the same binding")
	}
	if _, err := Binding(new(tls.ConnectionState)); err == nil {
		t.Error("no connection has one")
	}
}

// bindings returns those of both ends of a new connection.
func bindings(t *testing.T) (both [2][]byte) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	server := tls.Server(there, &tls.Config{MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true,
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
	client := tls.Client(here, &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true})
	done := make(chan error)
	go func() { done <- server.Handshake() }()
	if err := client.Handshake(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for i, conn := range []*tls.Conn{server, client} {
		state := conn.ConnectionState()
		if both[i], err = Binding(&state); err != nil {
			t.Fatal(err)
		}
	}
	return both
}

func FuzzParseCode(f *testing.F) {
	entries, err := os.ReadDir(filepath.Join("testdata", "fuzz", f.Name()))
	if err != nil || len(entries) == 0 {
		f.Fatalf("no seed corpus in testdata/fuzz/%s: %v", f.Name(), err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseCode(text)
		if err != nil {
			if c != (Code{}) {
				t.Fatal("an error comes with a code")
			}
			return
		}
		if again, err := ParseCode(c.Text()); err != nil || again != c {
			t.Fatalf("%q becomes %q and isn't read back: %v", text, c.Text(), err)
		}
	})
}
