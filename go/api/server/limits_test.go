package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/api/route"
	"powercloud.unidatum.com/go/cluster/revocation"
	"powercloud.unidatum.com/go/keys/keystest"
)

// patient returns limits under which nothing ends because time passes.
func patient() Limits {
	limits := DefaultLimits()
	limits.Handshake, limits.Header, limits.Idle, limits.Pause = time.Hour, time.Hour, time.Hour, time.Hour
	return limits
}

// wait waits until something holds.
func wait(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%s: not in a minute", what)
		}
	}
}

// from connects from an address of this machine.
func from(t *testing.T, source, address string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}}).Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// over does the handshake of a connection.
func over(t *testing.T, conn net.Conn, certificate *tls.Certificate) *tls.Conn {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}}
	if certificate != nil {
		config.Certificates = []tls.Certificate{*certificate}
	}
	secure := tls.Client(conn, config)
	if err := secure.Handshake(); err != nil {
		t.Fatal(err)
	}
	return secure
}

// say writes to a connection. That fails once the other end has closed it.
func say(conn net.Conn, text string) { _, _ = io.WriteString(conn, text) }

// stalls are the ways not to go on, by name.
func stalls(t *testing.T, certificate *tls.Certificate) map[string]func(net.Conn) {
	secure := func(conn net.Conn, text string) { say(over(t, conn, certificate), text) }
	return map[string]func(net.Conn){
		"nothing":     func(net.Conn) {},
		"no TLS":      func(conn net.Conn) { say(conn, "\x16\x03\x01") },
		"no request":  func(conn net.Conn) { secure(conn, "") },
		"half header": func(conn net.Conn) { secure(conn, "POST /v1/enrollment HTTP/1.1\r\nHo") },
		"half body": func(conn net.Conn) {
			secure(conn, "POST /v1/enrollment HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{")
		},
		"half chunk": func(conn net.Conn) {
			secure(conn, "POST /v1/enrollment HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{")
		},
		"half body to nowhere": func(conn net.Conn) {
			secure(conn, "POST /v1/nowhere HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{")
		},
		"no body but 100": func(conn net.Conn) {
			secure(conn, "POST /v1/enrollment HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n")
		},
	}
}

// TestStalledBlockNobody has some networks take more connections than there are, and
// stall each. Somebody else is answered.
func TestStalledBlockNobody(t *testing.T) {
	c := newCluster(t, keystest.First(t))
	limits := patient()
	limits.Handshakes, limits.HandshakesEach, limits.Connections, limits.ConnectionsEach = 8, 4, 8, 4
	limits.Requests, limits.RequestsEach = 4, 2
	for name, stall := range stalls(t, nil) {
		t.Run(name, func(t *testing.T) {
			s, address := start(t, modes(t, c, new(revocation.List))[route.Blank], limits)
			for _, source := range []string{"127.0.0.2", "127.0.0.3", "127.0.0.4"} {
				for range 6 {
					stall(from(t, source, address))
				}
			}
			offer := route.GetOffer()
			status, answer, err := ask(address, nil, secretCode(), offer.Method, offer.Path, []byte("{}"))
			if err != nil || status != http.StatusOK {
				t.Errorf("%d %q, %v", status, answer, err)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			// Those that were pushed out take a moment to go.
			if len(s.open) > 3*6+1 {
				t.Errorf("%d connections are open", len(s.open))
			}
		})
	}
}

// TestMemberFloods has a member take all that one may. Another is answered.
func TestMemberFloods(t *testing.T) {
	c := newCluster(t, keystest.First(t))
	limits := patient()
	limits.Connections, limits.ConnectionsEach, limits.Requests, limits.RequestsEach = 8, 4, 4, 2
	s, address := start(t, modes(t, c, new(revocation.List))[route.Open], limits)
	flooder, honest := c.admin(now()), c.admin(now())
	half := func() *tls.Conn {
		conn := over(t, from(t, "127.0.0.1", address), flooder)
		say(conn, "PUT /v1/membership HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{")
		return conn
	}
	half()
	half()
	wait(t, "two turns", func() bool {
		s.turns.mu.Lock()
		defer s.turns.mu.Unlock()
		return s.turns.all == 2
	})
	for range 10 {
		half()
	}
	info := route.GetInfo()
	if status, answer, err := ask(address, honest, nil, info.Method, info.Path, nil); err != nil || status != http.StatusOK {
		t.Errorf("somebody else: %d %q, %v", status, answer, err)
	}
}

// TestBusy asks for more than there are turns.
func TestBusy(t *testing.T) {
	c := newCluster(t, keystest.First(t))
	mode := modes(t, c, new(revocation.List))[route.Open]
	began, end := make(chan struct{}), make(chan struct{})
	Handle(mode.Handlers, route.Power(), func(context.Context, Caller, *message.Power) (*message.None, error) {
		began <- struct{}{}
		<-end
		return new(message.None), nil
	})
	limits := patient()
	limits.Requests, limits.RequestsEach = 3, 2
	_, address := start(t, mode, limits)
	first, second, third := c.admin(now()), c.admin(now()), c.admin(now())
	power, info := route.Power(), route.GetInfo()
	var working sync.WaitGroup
	work := func(who *tls.Certificate) {
		working.Go(func() {
			if status, answer, err := ask(address, who, nil, power.Method, power.Path, []byte("{}")); err != nil || status != http.StatusOK {
				t.Errorf("at work: %d %q, %v", status, answer, err)
			}
		})
		<-began
	}
	refused := func(who *tls.Certificate, want int) {
		t.Helper()
		status, answer, err := ask(address, who, nil, info.Method, info.Path, nil)
		if err != nil || status != want || want != http.StatusOK && code(t, answer) != message.CodeBusy {
			t.Errorf("%d %q, %v", status, answer, err)
		}
	}
	work(first)
	work(first)
	refused(first, http.StatusServiceUnavailable)
	refused(second, http.StatusOK)
	work(second)
	refused(third, http.StatusServiceUnavailable)
	close(end)
	working.Wait()
	refused(first, http.StatusOK)
	refused(third, http.StatusOK)
}

// TestFloodEndsNoWork opens more connections than there are, each from another network,
// while somebody waits for an answer.
func TestFloodEndsNoWork(t *testing.T) {
	c := newCluster(t, keystest.First(t))
	mode := modes(t, c, new(revocation.List))[route.Blank]
	began, end := make(chan struct{}), make(chan struct{})
	Handle(mode.Handlers, route.Enroll(), func(context.Context, Caller, *message.Enrollment) (*message.Enrolled, error) {
		close(began)
		<-end
		return new(message.Enrolled), nil
	})
	limits := patient()
	limits.Connections, limits.ConnectionsEach, limits.Handshakes = 4, 2, 4
	s, address := start(t, mode, limits)
	answered := make(chan error)
	go func() {
		enroll := route.Enroll()
		status, answer, err := ask(address, nil, secretCode(), enroll.Method, enroll.Path, example(enroll.Route))
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("%d %q", status, answer)
		}
		answered <- err
	}()
	<-began
	// Which of them are pushed out depends on the order in which their handshakes end for
	// the server, which may not be this one.
	var out atomic.Int64
	for i := range 12 {
		conn := over(t, from(t, fmt.Sprintf("127.0.1.%d", i+1), address), nil)
		go func() {
			_, _ = io.Copy(io.Discard, conn)
			out.Add(1)
		}()
	}
	wait(t, "those that are too many were pushed out", func() bool { return out.Load() == int64(12-limits.Connections) })
	close(end)
	if err := <-answered; err != nil {
		t.Errorf("who was being answered: %v", err)
	}
	wait(t, "only as many as may be are left", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.open) == limits.Connections
	})
}

// TestSlowOnesAreCut has every stall end, and clients that send byte by byte.
func TestSlowOnesAreCut(t *testing.T) {
	c := newCluster(t, keystest.First(t))
	const moment = time.Millisecond
	for name, stall := range stalls(t, nil) {
		t.Run(name, func(t *testing.T) {
			limits := patient()
			limits.Header = moment
			if name == "nothing" || name == "no TLS" {
				limits.Handshake = moment
			}
			_, address := start(t, modes(t, c, new(revocation.List))[route.Blank], limits)
			conn := from(t, "127.0.0.1", address)
			stall(conn)
			ended(t, conn)
		})
	}
	for name, begin := range map[string]string{
		"header": "GET /v1/lock HTTP/1.1\r\nHost: a\r\nX: ",
		"body":   "POST /v1/unlock HTTP/1.1\r\nHost: a\r\nContent-Length: 16000\r\n\r\n",
		"chunks": "POST /v1/unlock HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
	} {
		t.Run(name+" byte by byte", func(t *testing.T) {
			limits := patient()
			limits.Header = 20 * moment
			_, address := start(t, modes(t, c, new(revocation.List))[route.Locked], limits)
			conn := over(t, from(t, "127.0.0.1", address), nil)
			say(conn, begin)
			piece := " "
			if name == "chunks" {
				piece = "1\r\n \r\n"
			}
			// The next byte always comes in time, if not the last.
			tick := time.NewTicker(moment)
			defer tick.Stop()
			for range 60_000 {
				if _, err := io.WriteString(conn, piece); err != nil {
					return
				}
				<-tick.C
			}
			t.Error("the server takes whatever time it takes")
		})
	}
	t.Run("idle", func(t *testing.T) {
		limits := patient()
		limits.Idle = moment
		_, address := start(t, modes(t, c, new(revocation.List))[route.Open], limits)
		conn := over(t, from(t, "127.0.0.1", address), c.admin(now()))
		say(conn, "GET /v1/info HTTP/1.1\r\nHost: a\r\n\r\n")
		ended(t, conn)
	})
}

// ended reads to the end that a connection comes to.
func ended(t *testing.T, conn net.Conn) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	_, err := io.Copy(io.Discard, conn)
	if waits := net.Error(nil); errors.As(err, &waits) && waits.Timeout() {
		t.Error("the connection lasts")
	}
}

// TestStreamNobodyReads asks for a stream and takes nothing of it.
func TestStreamNobodyReads(t *testing.T) {
	c := newCluster(t, keystest.First(t))
	mode := modes(t, c, new(revocation.List))[route.Open]
	failed := make(chan error, 1)
	HandleStream(mode.Handlers, route.Logs(), func(_ context.Context, _ Caller, _ *message.Logs, w io.Writer) error {
		for {
			if _, err := w.Write(bytes.Repeat([]byte{'a'}, 1<<20)); err != nil {
				failed <- err
				return err
			}
		}
	})
	limits := patient()
	limits.Pause = time.Millisecond
	s, address := start(t, mode, limits)
	conn := over(t, from(t, "127.0.0.1", address), c.admin(now()))
	say(conn, "POST /v1/logs HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}")
	if err := <-failed; err == nil {
		t.Error("it ended without an error")
	}
	wait(t, "the turn is given back", func() bool {
		s.turns.mu.Lock()
		defer s.turns.mu.Unlock()
		return s.turns.all == 0 && len(s.turns.taken) == 0
	})
}

// TestHugeRequests sends more than anybody may.
func TestHugeRequests(t *testing.T) {
	c := newCluster(t, keystest.First(t))
	_, address := start(t, modes(t, c, new(revocation.List))[route.Locked], patient())
	for name, test := range map[string]struct {
		begin, more string
		status      string
	}{
		"header":    {"GET /v1/lock HTTP/1.1\r\nHost: a\r\n", "X: " + strings.Repeat("a", 1000) + "\r\n", "431"},
		"path":      {"GET /", strings.Repeat("a", 1000), "431"},
		"body":      {"POST /v1/unlock HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000000\r\n\r\n", strings.Repeat(" ", 1000), "413"},
		"chunks":    {"POST /v1/unlock HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", "3e8\r\n" + strings.Repeat(" ", 1000) + "\r\n", "413"},
		"chunk":     {"POST /v1/unlock HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffff\r\n", strings.Repeat(" ", 1000), "413"},
		"extension": {"POST /v1/unlock HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;", strings.Repeat("a", 1000), "400"},
	} {
		t.Run(name, func(t *testing.T) {
			conn := over(t, from(t, "127.0.0.1", address), nil)
			heard := make(chan []byte, 1)
			go func() {
				begin := make([]byte, len("HTTP/1.1 200"))
				n, _ := io.ReadFull(conn, begin)
				heard <- begin[:n]
				_, _ = io.Copy(io.Discard, conn)
			}()
			say(conn, test.begin)
			for range 100_000 {
				if _, err := io.WriteString(conn, test.more); err != nil {
					if got := <-heard; string(got) != "HTTP/1.1 "+test.status {
						t.Errorf("the answer begins %q", got)
					}
					return
				}
			}
			t.Error("the server takes it all")
		})
	}
}

// TestCrowd states who is pushed out.
func TestCrowd(t *testing.T) {
	type arrival struct{ source, out string }
	for name, arrivals := range map[string][]arrival{
		"too many of one":     {{"a", ""}, {"b", ""}, {"b", ""}, {"b", "1"}},
		"the largest":         {{"a", ""}, {"b", ""}, {"b", ""}, {"c", "1"}},
		"the oldest of equal": {{"a", ""}, {"b", ""}, {"c", ""}, {"d", "0"}, {"e", "1"}, {"a", "2"}},
	} {
		crowd := newCrowd(3, 2)
		conns := map[net.Conn]string{}
		for i, a := range arrivals {
			conn := &net.TCPConn{}
			conns[conn] = fmt.Sprint(i)
			if got := conns[crowd.insert(conn, a.source)]; got != a.out {
				t.Errorf("%s: %d pushes out %q, want %q", name, i, got, a.out)
			}
			if crowd.insert(conn, a.source) != nil {
				t.Errorf("%s: %d came twice", name, i)
			}
		}
		for conn := range conns {
			crowd.remove(conn)
		}
		if len(crowd.places) != 0 || len(crowd.sources) != 0 {
			t.Errorf("%s: something is left", name)
		}
	}
}

// TestTurns has some callers take all turns that they can. Others still get one.
func TestTurns(t *testing.T) {
	limits := DefaultLimits()
	for _, greedy := range []int{1, 4, 16, 40} {
		turns := newTurns(limits.Requests, limits.RequestsEach)
		took := make(map[string]int)
		for again := true; again; {
			again = false
			for i := range greedy {
				if caller := fmt.Sprint(i); turns.take(caller) {
					took[caller]++
					again = true
				}
			}
		}
		if greedy == 1 && took["0"] != limits.RequestsEach {
			t.Errorf("one alone has %d turns", took["0"])
		}
		if !turns.take("honest") {
			t.Errorf("%d callers have taken all %d turns", greedy, turns.all)
		}
		turns.give("honest")
		for caller, count := range took {
			for range count {
				turns.give(caller)
			}
		}
		if turns.all != 0 || len(turns.taken) != 0 {
			t.Errorf("%d turns are left", turns.all)
		}
	}
}

func TestNetwork(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.1:1": "192.0.2.1", "[::ffff:192.0.2.1]:1": "192.0.2.1", "[2001:db8:1:2:3::4]:5": "2001:db8:1:2::/64",
		"[fe80::1%eth0]:2": "fe80::/64", "pipe": "pipe",
	} {
		if got := network(remote); got != want {
			t.Errorf("%s is in %s, want %s", remote, got, want)
		}
	}
}
