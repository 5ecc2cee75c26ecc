package enroll

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"powercloud.unidatum.com/go/api/client"
	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/api/proof"
	"powercloud.unidatum.com/go/api/route"
	"powercloud.unidatum.com/go/api/server"
	"powercloud.unidatum.com/go/cluster/address"
	"powercloud.unidatum.com/go/cluster/volumeid"
)

// desk is a Desk with what a test needs of it.
type desk struct {
	*Desk
	key ed25519.PrivateKey
	log bytes.Buffer
}

func newDesk(t *testing.T, join func(context.Context, *message.Enrollment) (*message.Enrolled, error)) *desk {
	t.Helper()
	d := &desk{}
	var err error
	if _, d.key, err = ed25519.GenerateKey(rand.Reader); err != nil {
		t.Fatal(err)
	}
	d.Desk, err = New(Config{Key: d.key, Version: "dev", Disk: true, Join: join, Random: rand.Reader,
		Log: slog.New(slog.NewTextHandler(&d.log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// caller is one from an address, who knows a code.
func (d *desk) caller(t *testing.T, from string, code proof.Code) server.Caller {
	t.Helper()
	p := server.Proof{Binding: []byte("binding"), Path: "/", Body: []byte("{}")}
	var err error
	if p.MAC, err = code.MAC(p.Binding, p.Path, p.Body); err != nil {
		t.Fatal(err)
	}
	return server.Caller{Address: from, Proof: p}
}

// other is a code that isn't the desk's.
func (d *desk) other() proof.Code {
	code := d.code
	code.Secret[3] ^= 1
	return code
}

func request() *message.Enrollment {
	return &message.Enrollment{Name: "home-1", Authority: []byte{1}, Certificate: []byte{1}, Volume: volumeid.ID{1}, VolumeKey: message.Key{2}}
}

// TestGuesses tries a thousand codes at once. They are slowed, wherever they come from, and
// who knows the code waits for those alone that were there before.
func TestGuesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		start := time.Now()
		const before, after = 60, 1000 - 60
		var guessing sync.WaitGroup
		guess := func(n int) {
			for i := range n {
				guessing.Go(func() {
					from := fmt.Sprintf("[2001:db8:%x::1]:1", i)
					if err := d.admit(t.Context(), d.caller(t, from, d.other())); !message.HasCode(err, message.CodeProof) {
						t.Errorf("a wrong code: %v", err)
					}
				})
			}
		}
		guess(before)
		synctest.Wait()
		right := make(chan error)
		go func() { right <- d.admit(t.Context(), d.caller(t, "192.0.2.1:1", d.code)) }()
		synctest.Wait()
		guess(after)
		if err := <-right; err != nil {
			t.Errorf("the right code: %v", err)
		}
		if waited := time.Since(start); waited != before*pause {
			t.Errorf("the right code waited %v for %d guesses", waited, before)
		}
		guessing.Wait()
		if took := time.Since(start); took < (before+after-1)*pause {
			t.Errorf("%d guesses took %v", before+after, took)
		}
		if lines := strings.Count(d.log.String(), "\n"); lines != 10 {
			t.Errorf("the log has %d lines of %d guesses", lines, before+after)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if err := d.admit(gone, d.caller(t, "192.0.2.1:1", d.code)); !message.HasCode(err, message.CodeBusy) {
			t.Errorf("somebody who went away after a guess: %v", err)
		}
	})
}

// TestTwoAtOnce enrolls a node that is being enrolled, and again when it is.
func TestTwoAtOnce(t *testing.T) {
	began, end := make(chan struct{}), make(chan struct{})
	enrolled, calls := false, 0
	d := newDesk(t, func(ctx context.Context, asked *message.Enrollment) (*message.Enrolled, error) {
		calls++
		if enrolled {
			return nil, message.Errorf(message.CodeEnrolled, "node is already enrolled in a cluster")
		}
		close(began)
		<-end
		enrolled = true
		if asked.VolumeKey != (message.Key{2}) || asked.Name != "home-1" {
			t.Errorf("it is asked to join with %+v", asked)
		}
		// Who began has gone; it is finished all the same.
		return &message.Enrolled{Encrypted: true}, ctx.Err()
	})
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error)
	asked := request()
	go func() {
		answer, err := d.enroll(ctx, d.caller(t, "192.0.2.1:1", d.code), asked)
		if err == nil && !answer.Encrypted {
			err = errors.New("it isn't encrypted")
		}
		first <- err
	}()
	<-began
	if _, err := d.enroll(t.Context(), d.caller(t, "192.0.2.2:1", d.code), request()); !message.HasCode(err, message.CodeBusy) {
		t.Errorf("at the same time: %v", err)
	}
	if _, err := d.enroll(t.Context(), d.caller(t, "192.0.2.3:1", d.other()), request()); !message.HasCode(err, message.CodeProof) {
		t.Errorf("at the same time with a wrong code: %v", err)
	}
	cancel()
	close(end)
	if err := <-first; err != nil {
		t.Errorf("the first: %v", err)
	}
	if asked.VolumeKey != (message.Key{}) {
		t.Error("the key is left in memory")
	}
	if _, err := d.enroll(t.Context(), d.caller(t, "192.0.2.2:1", d.code), request()); !message.HasCode(err, message.CodeEnrolled) {
		t.Errorf("the second: %v", err)
	}
	if calls != 2 {
		t.Errorf("Join was called %d times", calls)
	}
}

// TestWithoutKey enrolls with a request that lacks what the volume needs.
func TestWithoutKey(t *testing.T) {
	d := newDesk(t, func(context.Context, *message.Enrollment) (*message.Enrolled, error) {
		t.Error("the node joins")
		return new(message.Enrolled), nil
	})
	noKey, noVolume := request(), request()
	noKey.VolumeKey, noVolume.Volume = message.Key{}, volumeid.ID{}
	for name, asked := range map[string]*message.Enrollment{"no key": noKey, "no volume": noVolume} {
		if _, err := d.enroll(t.Context(), d.caller(t, "192.0.2.1:1", d.code), asked); err == nil {
			t.Errorf("%s: the node takes it", name)
		}
	}
}

func TestNew(t *testing.T) {
	d := newDesk(t, nil)
	code, err := proof.ParseCode(d.Code())
	if err != nil || code != d.code || code.Fingerprint.NodeID() != d.ID() {
		t.Errorf("the code %s is of %s: %v", d.Code(), d.ID(), err)
	}
	if again := newDesk(t, nil); again.code.Secret == d.code.Secret {
		t.Error("two desks have the same secret")
	}
	if _, err := New(Config{Key: d.key, Random: bytes.NewReader(make([]byte, proof.SecretSize-1)), Log: slog.Default()}); err == nil {
		t.Error("there is a code without random bytes")
	}
}

// TestOverTheNetwork enrolls a node as pcctl does, and as one who edits its request.
func TestOverTheNetwork(t *testing.T) {
	joined := 0
	d := newDesk(t, func(context.Context, *message.Enrollment) (*message.Enrolled, error) {
		joined++
		return &message.Enrolled{Encrypted: true}, nil
	})
	at := d.serve(t)
	code, err := proof.ParseCode(d.Code())
	if err != nil {
		t.Fatal(err)
	}
	offer, err := ask(t, at, &code, route.GetOffer(), new(message.None))
	if err != nil || offer.ID != d.ID() || !bytes.Equal(offer.Key, d.key.Public().(ed25519.PublicKey)) {
		t.Errorf("%+v, %v", offer, err)
	}
	body := []byte(`{"name":"home-1","ca":"","certificate":"","volume":"000102030405060708090a0b0c0d0e0f","volume_key":"` + strings.Repeat("A", 43) + `="}`)
	if got := edited(t, at, &code, body, bytes.Replace(body, []byte("home-1"), []byte("home-2"), 1)); !strings.Contains(got, `"code":"proof"`) {
		t.Errorf("an edited request: %s", got)
	}
	answer, err := ask(t, at, &code, route.Enroll(), request())
	if err != nil || !answer.Encrypted || joined != 1 {
		t.Errorf("%+v, %v; it joined %d times", answer, err, joined)
	}
}

func ask[Request, Answer any](t *testing.T, at address.Address, code *proof.Code, call route.Call[Request, Answer], request *Request) (*Answer, error) {
	t.Helper()
	c, err := client.Pinned(t.Context(), at, code.Fingerprint, code)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return client.Do(t.Context(), c, call, request)
}

// edited sends another body than the one that the proof is for, and returns the answer.
func edited(t *testing.T, at address.Address, code *proof.Code, proved, sent []byte) string {
	t.Helper()
	conn, err := tls.Dial("tcp", at.String(), &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13})
	if err != nil {
		t.Fatal(err)
	}
	state := conn.ConnectionState()
	binding, err := proof.Binding(&state)
	if err != nil {
		t.Fatal(err)
	}
	mac, err := code.MAC(binding, route.Enroll().Path, proved)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequest(http.MethodPost, "https://"+at.String()+route.Enroll().Path, bytes.NewReader(sent))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(proof.Header, hex.EncodeToString(mac))
	transport := &http.Transport{DisableKeepAlives: true, DialTLSContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}
	response, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// serve lets a desk answer on this machine until the test ends.
func (d *desk) serve(t *testing.T) address.Address {
	t.Helper()
	certificate, err := server.SelfSigned(d.key, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(&server.Mode{State: route.Blank, Handlers: d.Handlers(),
		Certificate: func() (*tls.Certificate, error) { return certificate, nil }}, server.DefaultLimits(), d.config.Log)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	at, err := address.Parse(listener.Addr().String(), address.APIPort)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestThousandGuesses has a thousand codes tried over the network, by several at once. Who
// knows the code is answered among them, and the log stays short.
func TestThousandGuesses(t *testing.T) {
	const guessers, each = 8, 125
	d := newDesk(t, nil)
	at := d.serve(t)
	other := d.other()
	var guessing sync.WaitGroup
	for range guessers {
		guessing.Go(func() {
			for range each {
				if _, err := ask(t, at, &other, route.GetOffer(), new(message.None)); !message.HasCode(err, message.CodeProof) {
					t.Errorf("a wrong code: %v", err)
				}
			}
		})
	}
	guessing.Go(func() {
		for range 20 {
			if _, err := ask(t, at, &d.code, route.GetOffer(), new(message.None)); err != nil {
				t.Errorf("the right code: %v", err)
			}
		}
	})
	guessing.Wait()
	if text := d.log.String(); strings.Count(text, "\n") != 10 || strings.Count(text, "the code was wrong") != 10 {
		t.Errorf("of %d guesses the log has\n%s", guessers*each, text)
	}
}
