package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/api/proof"
	"powercloud.unidatum.com/go/api/route"
	"powercloud.unidatum.com/go/api/server"
	"powercloud.unidatum.com/go/cluster/address"
	"powercloud.unidatum.com/go/cluster/revocation"
	"powercloud.unidatum.com/go/keys/keystest"
	"powercloud.unidatum.com/go/pki"
)

// TestWho asks nodes that are and aren't the one that is meant, as who may ask and who
// may not.
func TestWho(t *testing.T) {
	ca, other := newCA(t, keystest.First(t)), newCA(t, keystest.Second(t))
	self, somebody, me := node(t, ca, now()), node(t, ca, now()), admin(t, ca, now())
	old := node(t, ca, now().Add(-pki.NodeLifetime-time.Hour))
	early := node(t, ca, now().Add(2*time.Hour))
	revoked := revocation.List{}.WithAdmins(now().Add(time.Minute))
	for name, test := range map[string]struct {
		node, as identity
		peer     Peer
		revoked  *revocation.List
		want     error
	}{
		"all is well":              {self, me, Peer{ID: self.id}, nil, nil},
		"another node":             {somebody, me, Peer{ID: self.id}, nil, ErrNode},
		"another cluster":          {node(t, other, now()), me, Peer{ID: self.id}, nil, ErrNotMember},
		"an admin":                 {me, me, Peer{ID: me.id}, nil, ErrNode},
		"nobody's node":            {selfSigned(t), me, Peer{ID: self.id}, nil, ErrNotMember},
		"expired":                  {old, me, Peer{ID: old.id}, nil, ErrNodeExpired},
		"expired and to be":        {old, me, Peer{ID: old.id, Expired: true}, nil, nil},
		"not expired, could be":    {self, me, Peer{ID: self.id, Expired: true}, nil, nil},
		"expired, another node":    {old, me, Peer{ID: self.id, Expired: true}, nil, ErrNode},
		"another expired node":     {old, me, Peer{ID: self.id}, nil, ErrNode},
		"an expired admin's node":  {admin(t, ca, now().Add(-pki.AdminLifetime-time.Hour)), me, Peer{ID: self.id, Expired: true}, nil, ErrNotMember},
		"expired, another cluster": {node(t, other, now().Add(-pki.NodeLifetime-time.Hour)), me, Peer{ID: old.id, Expired: true}, nil, ErrNotMember},
		"not yet valid":            {early, me, Peer{ID: early.id, Expired: true}, nil, ErrNotMember},
		"a revoked admin":          {self, me, Peer{ID: self.id}, &revoked, ErrRefused},
		"an expired admin":         {self, admin(t, ca, now().Add(-pki.AdminLifetime-time.Hour)), Peer{ID: self.id}, nil, ErrRefused},
		"another cluster's admin":  {self, admin(t, other, now()), Peer{ID: self.id}, nil, ErrRefused},
		"no certificate":           {self, identity{Certificate: new(tls.Certificate)}, Peer{ID: self.id}, nil, ErrRefused},
	} {
		t.Run(name, func(t *testing.T) {
			if test.revoked == nil {
				test.revoked = new(revocation.List)
			}
			test.peer.Address = member(t, ca, test.node, test.revoked, open())
			test.peer.Authority = ca.Authority()
			// What a node that refuses says must always be heard.
			for range 4 {
				c := New(test.peer, test.as.Certificate, now)
				if _, met := c.Met(); met {
					t.Error("the node was met before it was asked anything")
				}
				_, err := Do(t.Context(), c, route.GetInfo(), nil)
				if !errors.Is(err, test.want) || test.want == nil && err != nil {
					t.Errorf("a question: %v", err)
				}
				// A node that refuses its caller has shown who it is.
				found, met := c.Met()
				if want := err == nil || errors.Is(err, ErrRefused); met != want || met && (found.Node != test.peer.ID || found.Role != pki.RoleNode) {
					t.Errorf("met: %v, %+v", met, found)
				}
				_, err = Do(t.Context(), c, route.PutMembership(), &message.Document{Signed: make([]byte, 1<<20)})
				if !errors.Is(err, test.want) || test.want == nil && err != nil {
					t.Errorf("a large request: %v", err)
				}
				stream, err := Read(t.Context(), c, route.Logs(), new(message.Logs), time.Hour)
				if !errors.Is(err, test.want) || test.want == nil && err != nil {
					t.Errorf("a stream: %v", err)
				}
				if err == nil {
					stream.Close()
				}
				c.Close()
			}
		})
	}
}

// TestBrokenWrite writes to a node that has ended the connection and said why, but whose
// system has reset it then.
func TestBrokenWrite(t *testing.T) {
	ca := newCA(t, keystest.First(t))
	self, me := node(t, ca, now()), admin(t, ca, now())
	listener := listen(t)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			secure := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{*self.Certificate}, ClientAuth: tls.RequireAnyClientCert,
				VerifyConnection: func(tls.ConnectionState) error { return errors.New("no") }})
			if err := secure.Handshake(); err == nil {
				t.Error("the server lets anybody in")
			}
			// What has come, and is never read, resets the connection.
			_ = conn.(*net.TCPConn).SetLinger(0)
			_ = conn.Close()
		}
	}()
	for range 20 {
		connected, err := dial(t.Context(), at(t, listener), &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{*me.Certificate}}, dialTimeout)
		if err != nil {
			t.Fatal(err)
		}
		// As when the answer comes and the reader is slower than the writer.
		go func() {
			_, _ = connected.Read(make([]byte, 1))
		}()
		for err == nil {
			_, err = connected.Write([]byte("GET / HTTP/1.1\r\n"))
		}
		<-connected.heard
		if connected.refused != nil && !errors.Is(err, ErrRefused) {
			t.Errorf("the alert was heard, and writing says %v", err)
		}
		connected.Close()
	}
}

// TestOddAnswers asks nodes that answer what no node does.
func TestOddAnswers(t *testing.T) {
	ca := newCA(t, keystest.First(t))
	self, me := node(t, ca, now()), admin(t, ca, now())
	ok := "HTTP/1.1 200 OK\r\n"
	failed := func(text string) string {
		return fmt.Sprintf("HTTP/1.1 409 No\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
	}
	for name, test := range map[string]struct{ text, want string }{
		"nothing":             {"", "EOF"},
		"no HTTP":             {"\x00\x1b[2J\n\n\n\n", "malformed HTTP"},
		"no JSON":             {ok + "Content-Length: 5\r\n\r\nhello", "the node's answer can't be read"},
		"two":                 {ok + "Content-Length: 4\r\n\r\n{}{}", "the node's answer can't be read"},
		"less than said":      {ok + "Content-Length: 50\r\n\r\n{}", "unexpected EOF"},
		"a chunk less":        {ok + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", "unexpected EOF"},
		"too much":            {ok + "Content-Length: 1000000000\r\n\r\n" + strings.Repeat(" ", 1<<20), "it is larger than"},
		"too much, chunked":   {ok + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1000\r\n"+strings.Repeat(" ", 4096)+"\r\n", 300), "it is larger than"},
		"a large header":      {ok + strings.Repeat("X: "+strings.Repeat("a", 1000)+"\r\n", 100), "exceeded"},
		"many for now":        {strings.Repeat("HTTP/1.1 103 Early Hints\r\nX: "+strings.Repeat("a", 1000)+"\r\n\r\n", 100), "exceeded"},
		"another place":       {"HTTP/1.1 307 Over There\r\nLocation: https://127.0.0.1:1/v1/info\r\nContent-Length: 0\r\n\r\n", "HTTP status 307"},
		"nothing to say":      {"HTTP/1.1 204 No Content\r\n\r\n", "HTTP status 204"},
		"an odd failure":      {"HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nno", "HTTP status 500"},
		"a large failure":     {"HTTP/1.1 500 No\r\nContent-Length: 1000000\r\n\r\n" + `{"error":"` + strings.Repeat("a", 1<<16), "HTTP status 500"},
		"a failure":           {failed(`{"code":"c","error":"t"}`), "t"},
		"a terminal's orders": {failed(`{"error":"a\n\u001b[2Jb\u009b2Jc\u202ed\u2028e\u007f"}`), "a [2Jb 2Jc d e"},
		"another protocol":    {"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: a\r\n\r\n", "HTTP status 101"},
	} {
		t.Run(name, func(t *testing.T) {
			c := New(Peer{Address: odd(t, self, tls.RequireAnyClientCert, test.text, true), Authority: ca.Authority(), ID: self.id}, me.Certificate, now)
			defer c.Close()
			_, err := Do(t.Context(), c, route.GetInfo(), nil)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
			for _, r := range fmt.Sprint(err) {
				if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
					t.Errorf("the error %q has what a terminal obeys", err)
				}
			}
			if name == "a failure" && !message.HasCode(err, "c") {
				t.Errorf("the error %v has no code", err)
			}
		})
	}
}

// TestStream reads streams to their ends and where they break off.
func TestStream(t *testing.T) {
	ca := newCA(t, keystest.First(t))
	self, me := node(t, ca, now()), admin(t, ca, now())
	written, gone := make(chan struct{}), make(chan struct{})
	handlers := open()
	server.HandleStream(handlers, route.Logs(), func(ctx context.Context, _ server.Caller, asked *message.Logs, w io.Writer) error {
		if asked.Boot == "refused" {
			return message.Errorf("c", "no")
		}
		if _, err := io.WriteString(w, "a\n"); err != nil {
			return err
		}
		switch asked.Boot {
		case "cut":
			return errors.New("the log can't be read")
		case "left":
			close(written)
			<-ctx.Done()
			close(gone)
			return ctx.Err()
		}
		return nil
	})
	c := New(Peer{Address: member(t, ca, self, new(revocation.List), handlers), Authority: ca.Authority(), ID: self.id}, me.Certificate, now)
	defer c.Close()
	for boot, want := range map[string]error{"whole": nil, "cut": io.ErrUnexpectedEOF} {
		stream, err := Read(t.Context(), c, route.Logs(), &message.Logs{Boot: boot}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(stream)
		if string(text) != "a\n" || !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("%s: %q, %v", boot, text, err)
		}
		stream.Close()
	}
	if _, err := Read(t.Context(), c, route.Logs(), &message.Logs{Boot: "refused"}, time.Hour); !message.HasCode(err, "c") {
		t.Errorf("refused: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := Read(ctx, c, route.Logs(), &message.Logs{Boot: "left"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	<-written
	cancel()
	if _, err := io.ReadAll(stream); !errors.Is(err, context.Canceled) {
		t.Errorf("left: %v", err)
	}
	// The node notices.
	<-gone
}

// TestLate asks nodes that don't answer.
func TestLate(t *testing.T) {
	ca := newCA(t, keystest.First(t))
	self, me := node(t, ca, now()), admin(t, ca, now())
	silent := listen(t)
	// It includes the time to connect, which isn't the point here.
	call := route.GetInfo()
	call.Timeout = time.Second - time.Hour
	for name, text := range map[string]string{"no answer": "", "half an answer": "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{"} {
		c := New(Peer{Address: odd(t, self, tls.RequireAnyClientCert, text, false), Authority: ca.Authority(), ID: self.id}, me.Certificate, now)
		c.patience = time.Hour
		if _, err := Do(t.Context(), c, call, nil); err == nil || err.Error() != "the node has not answered within 1s" {
			t.Errorf("%s: %v", name, err)
		}
		c.Close()
	}
	c := New(Peer{Address: at(t, silent), Authority: ca.Authority(), ID: self.id}, me.Certificate, now)
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Do(ctx, c, call, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	// What status shows of a node that isn't there: it waits for longer than the connection
	// may take.
	impatient := New(Peer{Address: at(t, silent), Authority: ca.Authority(), ID: self.id, Patience: time.Millisecond}, me.Certificate, now)
	defer impatient.Close()
	waits, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	if _, err := Do(waits, impatient, route.GetInfo(), nil); err == nil || !strings.HasSuffix(err.Error(), at(t, silent).String()+": i/o timeout") {
		t.Errorf("no connection within a millisecond: %v", err)
	}
	past, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	if _, err := dial(past, at(t, silent), new(tls.Config), time.Hour); err == nil || err.Error() != "dial tcp "+at(t, silent).String()+": i/o timeout" {
		t.Errorf("no connection: %v", err)
	}
	plain, err := net.Dial("tcp", silent.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	want := "TLS handshake with " + at(t, silent).String() + ": i/o timeout"
	if _, err := handshake(past, plain, at(t, silent), &tls.Config{InsecureSkipVerify: true}); err == nil || err.Error() != want {
		t.Errorf("no TLS: %v", err)
	}
}

// TestPinned asks nodes that are known by the fingerprints of their keys.
func TestPinned(t *testing.T) {
	ca := newCA(t, keystest.First(t))
	self, blank := node(t, ca, now()), selfSigned(t)
	code := proof.Code{Fingerprint: blank.fingerprint, Secret: [proof.SecretSize]byte{1}}
	handlers := server.NewHandlers()
	server.Handle(handlers, route.GetOffer(), func(_ context.Context, caller server.Caller, _ *message.None) (*message.Offer, error) {
		if !caller.Proof.Knows(&code) {
			return nil, message.Errorf(message.CodeProof, "no")
		}
		return &message.Offer{Version: "v"}, nil
	})
	server.Handle(handlers, route.Enroll(), answers[message.Enrollment, message.Enrolled])
	waits := serve(t, &server.Mode{State: route.Blank, Handlers: handlers, Certificate: func() (*tls.Certificate, error) { return blank.Certificate, nil }})
	enrolled := member(t, ca, self, new(revocation.List), open())
	wrong := code
	wrong.Secret[0]++
	for name, test := range map[string]struct {
		to          address.Address
		fingerprint pki.Fingerprint
		code        *proof.Code
		want        error
		refused     string
	}{
		"with the code":    {waits, blank.fingerprint, &code, nil, ""},
		"another secret":   {waits, blank.fingerprint, &wrong, nil, message.CodeProof},
		"no code":          {waits, blank.fingerprint, nil, nil, message.CodeProof},
		"another key":      {waits, self.fingerprint, &code, ErrFingerprint, ""},
		"a member":         {enrolled, self.fingerprint, &code, ErrMember, ""},
		"another member":   {enrolled, blank.fingerprint, &code, ErrFingerprint, ""},
		"a member's chain": {odd(t, identity{Certificate: &tls.Certificate{Certificate: append(blank.Certificate.Certificate, self.Certificate.Certificate...), PrivateKey: blank.PrivateKey}}, tls.NoClientCert, "", true), blank.fingerprint, &code, ErrFingerprint, ""},
	} {
		c, err := Pinned(t.Context(), test.to, test.fingerprint, test.code)
		if !errors.Is(err, test.want) || test.want == nil && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		offer, err := Do(t.Context(), c, route.GetOffer(), new(message.None))
		if test.refused == "" && (err != nil || offer.Version != "v") || test.refused != "" && !message.HasCode(err, test.refused) {
			t.Errorf("%s: %+v, %v", name, offer, err)
		}
		// The proof was for that connection.
		if _, err := Do(t.Context(), c, route.GetOffer(), new(message.None)); err == nil {
			t.Errorf("%s: there is another connection", name)
		}
		c.Close()
	}
	unused, err := Pinned(t.Context(), waits, blank.fingerprint, &code)
	if err != nil {
		t.Fatal(err)
	}
	connected := <-unused.unused
	unused.unused <- connected
	unused.Close()
	if _, err := connected.Write([]byte("a")); err == nil {
		t.Error("the connection outlives its client")
	}
}

// TestTooLarge makes a request that no node takes.
func TestTooLarge(t *testing.T) {
	ca := newCA(t, keystest.First(t))
	me := admin(t, ca, now())
	c := New(Peer{Address: at(t, listen(t)), Authority: ca.Authority()}, me.Certificate, now)
	defer c.Close()
	_, err := Do(t.Context(), c, route.Ping(), &message.Ping{Target: strings.Repeat("a", 1<<20)})
	if err == nil || !strings.Contains(err.Error(), `the request "ping" has`) {
		t.Error(err)
	}
}
