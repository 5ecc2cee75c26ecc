package server

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/api/route"
	"powercloud.unidatum.com/go/cluster/revocation"
	"powercloud.unidatum.com/go/keys/keystest"
)

// serving is a server that a test ends.
type serving struct {
	*Server
	address string
	end     context.CancelFunc
	ended   chan error
}

// serveUntil serves on a listener until the test says so.
func serveUntil(t *testing.T, mode *Mode, limits Limits, log *slog.Logger, around func(net.Listener) net.Listener) *serving {
	t.Helper()
	s, err := New(mode, limits, log)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	v := &serving{s, listener.Addr().String(), cancel, make(chan error, 1)}
	go func() { v.ended <- s.Serve(ctx, around(listener)) }()
	t.Cleanup(cancel)
	return v
}

func plainly(listener net.Listener) net.Listener { return listener }

// at waits until so many connections are in a state.
func (v *serving) at(t *testing.T, state http.ConnState, count int) {
	t.Helper()
	wait(t, state.String(), func() bool {
		v.mu.Lock()
		defer v.mu.Unlock()
		found := 0
		for c := range v.open {
			if c.state == state {
				found++
			}
		}
		return found == count
	})
}

// answer reads an answer from a connection.
func answered(t *testing.T, r *bufio.Reader) (status int, body string) {
	t.Helper()
	response, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

const (
	getInfo   = "GET /v1/info HTTP/1.1\r\nHost: a\r\n\r\n"
	postPower = "POST /v1/power HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}"
	postLogs  = "POST /v1/logs HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}"
)

// TestServeEnds ends a server that has connections in every state. Nothing of it is left.
func TestServeEnds(t *testing.T) {
	c := newCluster(t, keystest.First(t))
	mode := modes(t, c, new(revocation.List))[route.Open]
	HandleStream(mode.Handlers, route.Logs(), func(ctx context.Context, _ Caller, _ *message.Logs, w io.Writer) error {
		for {
			if _, err := io.WriteString(w, strings.Repeat("a", 1<<16)); err != nil {
				return err
			}
		}
	})
	v := serveUntil(t, mode, patient(), slog.New(slog.DiscardHandler), plainly)
	admin := c.admin(now())
	for _, stall := range stalls(t, admin) {
		stall(from(t, "127.0.0.1", v.address))
	}
	// This one never reads.
	say(over(t, from(t, "127.0.0.1", v.address), admin), postLogs)
	idle := over(t, from(t, "127.0.0.1", v.address), admin)
	say(idle, getInfo)
	v.at(t, http.StateIdle, 1)
	v.end()
	if err := <-v.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	if conn, err := net.Dial("tcp", v.address); err == nil {
		conn.Close()
		t.Error("it still listens")
	}
	wait(t, "no goroutine is left", func() bool {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		return !bytes.Contains(stacks, []byte("http.(*conn).serve(")) && !bytes.Contains(stacks, []byte("server.(*gate)"))
	})
	wait(t, "no connection is left", func() bool {
		v.mu.Lock()
		defer v.mu.Unlock()
		return len(v.open) == 0
	})
}

// TestListenerFails has the listener end by itself.
func TestListenerFails(t *testing.T) {
	c := newCluster(t, keystest.First(t))
	closed := make(chan net.Listener, 1)
	v := serveUntil(t, modes(t, c, new(revocation.List))[route.Blank], patient(), slog.New(slog.DiscardHandler), func(l net.Listener) net.Listener {
		closed <- l
		return l
	})
	(<-closed).Close()
	if err := <-v.ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("it ended with %v", err)
	}
}

// TestAnswerAtTheEnd ends the server while it answers, as a reboot does.
func TestAnswerAtTheEnd(t *testing.T) {
	c := newCluster(t, keystest.First(t))
	mode := modes(t, c, new(revocation.List))[route.Open]
	ending := make(chan context.CancelFunc, 1)
	Handle(mode.Handlers, route.Power(), func(ctx context.Context, _ Caller, _ *message.Power) (*message.None, error) {
		(<-ending)()
		<-ctx.Done()
		return new(message.None), nil
	})
	v := serveUntil(t, mode, patient(), slog.New(slog.DiscardHandler), plainly)
	ending <- v.end
	power := route.Power()
	status, answer, err := ask(v.address, c.admin(now()), nil, power.Method, power.Path, []byte("{}"))
	if err != nil || status != http.StatusOK || string(answer) != "{}" {
		t.Errorf("%d %q, %v", status, answer, err)
	}
	<-v.ended
}

// TestSetMode has a node become another while connections are idle, unused and at work.
func TestSetMode(t *testing.T) {
	c := newCluster(t, keystest.First(t))
	all := modes(t, c, new(revocation.List))
	mode := all[route.Open]
	began, end := make(chan struct{}), make(chan struct{})
	Handle(mode.Handlers, route.Power(), func(context.Context, Caller, *message.Power) (*message.None, error) {
		close(began)
		<-end
		return new(message.None), nil
	})
	v := serveUntil(t, mode, patient(), slog.New(slog.DiscardHandler), plainly)
	admin := c.admin(now())
	idle, unused, working := over(t, from(t, "127.0.0.1", v.address), admin), over(t, from(t, "127.0.0.1", v.address), admin),
		over(t, from(t, "127.0.0.1", v.address), admin)
	say(idle, getInfo)
	v.at(t, http.StateIdle, 1)
	say(working, postPower)
	<-began
	v.at(t, http.StateNew, 1)
	if err := v.SetMode(all[route.Locked]); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(idle)
	if status, _ := answered(t, reader); status != http.StatusOK {
		t.Errorf("what was asked before: %d", status)
	}
	if _, err := reader.ReadByte(); err == nil {
		t.Error("an idle connection of before says more")
	}
	say(unused, getInfo)
	reader = bufio.NewReader(unused)
	if status, body := answered(t, reader); status != http.StatusConflict || !strings.Contains(body, `"the node is locked"`) {
		t.Errorf("a connection of before: %d %s", status, body)
	}
	close(end)
	reader = bufio.NewReader(working)
	if status, body := answered(t, reader); status != http.StatusOK {
		t.Errorf("who was being answered: %d %s", status, body)
	}
	if _, err := reader.ReadByte(); err == nil {
		t.Error("a connection of before lasts")
	}
	lock := route.GetLock()
	if status, answer, err := ask(v.address, nil, nil, lock.Method, lock.Path, nil); err != nil || status != http.StatusOK {
		t.Errorf("a new connection: %d %q, %v", status, answer, err)
	}
}

// TestNoMode states modes that none is.
func TestNoMode(t *testing.T) {
	all := modes(t, newCluster(t, keystest.First(t)), new(revocation.List))
	open, blank := all[route.Open], all[route.Blank]
	for name, mode := range map[string]*Mode{
		"open to anyone":      {State: route.Open, Certificate: open.Certificate, Handlers: open.Handlers},
		"blank to members":    {State: route.Blank, Certificate: blank.Certificate, Handlers: blank.Handlers, Identify: open.Identify},
		"a handler missing":   {State: route.Blank, Certificate: blank.Certificate, Handlers: NewHandlers()},
		"others' handlers":    {State: route.Blank, Certificate: blank.Certificate, Handlers: all[route.Locked].Handlers},
		"no handlers at open": {State: route.Open, Certificate: open.Certificate, Handlers: NewHandlers(), Identify: open.Identify},
	} {
		if _, err := New(mode, patient(), slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%s: a server came of it", name)
		}
	}
}

// journal is a log that tests read.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// TestPanic has handlers panic. The caller hears of it, the log has it, and others are
// answered.
func TestPanic(t *testing.T) {
	c := newCluster(t, keystest.First(t))
	mode := modes(t, c, new(revocation.List))[route.Open]
	Handle(mode.Handlers, route.Power(), func(context.Context, Caller, *message.Power) (*message.None, error) { panic("one") })
	HandleStream(mode.Handlers, route.Logs(), func(_ context.Context, _ Caller, _ *message.Logs, w io.Writer) error {
		_, err := io.WriteString(w, "a\n")
		if err != nil {
			return err
		}
		panic("two")
	})
	log := new(journal)
	limits := patient()
	limits.Requests, limits.RequestsEach = 1, 1
	v := serveUntil(t, mode, limits, slog.New(slog.NewTextHandler(log, nil)), plainly)
	admin := c.admin(now())
	power, logs, info := route.Power(), route.Logs(), route.GetInfo()
	for range 2 {
		status, answer, err := ask(v.address, admin, nil, power.Method, power.Path, []byte("{}"))
		if err != nil || status != http.StatusInternalServerError || code(t, answer) != "" || strings.Contains(string(answer), "one") {
			t.Errorf("%d %q, %v", status, answer, err)
		}
		wait(t, "the turn", func() bool {
			v.turns.mu.Lock()
			defer v.turns.mu.Unlock()
			return v.turns.all == 0
		})
		_, answer, err = ask(v.address, admin, nil, logs.Method, logs.Path, []byte("{}"))
		if !errors.Is(err, io.ErrUnexpectedEOF) || string(answer) != "a\n" {
			t.Errorf("a stream: %q, %v", answer, err)
		}
		wait(t, "the turn", func() bool {
			v.turns.mu.Lock()
			defer v.turns.mu.Unlock()
			return v.turns.all == 0
		})
	}
	if status, answer, err := ask(v.address, admin, nil, info.Method, info.Path, nil); err != nil || status != http.StatusOK {
		t.Errorf("afterwards: %d %q, %v", status, answer, err)
	}
	for _, want := range []string{"level=ERROR", "panic=one", "panic=two", "TestPanic"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %q", want)
		}
	}
}

// deadlined keeps what the deadlines of a listener's connections are.
type deadlined struct {
	net.Listener
	mu          sync.Mutex
	read, write time.Time
}

type deadlinedConn struct {
	net.Conn
	of *deadlined
}

func (d *deadlined) Accept() (net.Conn, error) {
	conn, err := d.Listener.Accept()
	return &deadlinedConn{conn, d}, err
}

func (c *deadlinedConn) set(read, write *time.Time, err error) error {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if read != nil {
		c.of.read = *read
	}
	if write != nil {
		c.of.write = *write
	}
	return err
}

func (c *deadlinedConn) SetDeadline(at time.Time) error {
	return c.set(&at, &at, c.Conn.SetDeadline(at))
}
func (c *deadlinedConn) SetReadDeadline(at time.Time) error {
	return c.set(&at, nil, c.Conn.SetReadDeadline(at))
}
func (c *deadlinedConn) SetWriteDeadline(at time.Time) error {
	return c.set(nil, &at, c.Conn.SetWriteDeadline(at))
}

// TestDeadlines states what is left of a request's deadlines after it, and that a stream
// has none for reading.
func TestDeadlines(t *testing.T) {
	c := newCluster(t, keystest.First(t))
	mode := modes(t, c, new(revocation.List))[route.Open]
	began, end := make(chan struct{}), make(chan struct{})
	HandleStream(mode.Handlers, route.Logs(), func(_ context.Context, _ Caller, _ *message.Logs, w io.Writer) error {
		_, err := io.WriteString(w, "a\n")
		close(began)
		<-end
		return err
	})
	limits := patient()
	limits.Idle, limits.Pause = 10*time.Hour, 20*time.Hour
	var d *deadlined
	v := serveUntil(t, mode, limits, slog.New(slog.DiscardHandler), func(l net.Listener) net.Listener {
		d = &deadlined{Listener: l}
		return d
	})
	// about reports whether a deadline is the one that was set with a limit just now.
	about := func(at time.Time, limit time.Duration) bool {
		left := time.Until(at)
		return left > limit-time.Hour && left <= limit
	}
	conn := over(t, from(t, "127.0.0.1", v.address), c.admin(now()))
	reader := bufio.NewReader(conn)
	for range 2 {
		say(conn, getInfo)
		if status, _ := answered(t, reader); status != http.StatusOK {
			t.Errorf("%d", status)
		}
		wait(t, "the deadlines of an idle connection", func() bool {
			d.mu.Lock()
			defer d.mu.Unlock()
			return about(d.read, limits.Idle) && d.write.IsZero()
		})
	}
	say(conn, postLogs)
	<-began
	d.mu.Lock()
	if !d.read.IsZero() || !about(d.write, limits.Pause) {
		t.Errorf("a stream has until %s to read and %s to write", d.read, d.write)
	}
	d.mu.Unlock()
	close(end)
	if status, body := answered(t, reader); status != http.StatusOK || body != "a\n" {
		t.Errorf("%d %q", status, body)
	}
	v.at(t, http.StateIdle, 1)
}

// TestRaw sends requests that HTTP allows or that somebody may hope to pass. Each is
// answered, or the connection ends.
func TestRaw(t *testing.T) {
	c := newCluster(t, keystest.First(t))
	_, address := start(t, modes(t, c, new(revocation.List))[route.Open], DefaultLimits())
	admin := c.admin(now())
	for name, test := range map[string]struct {
		request  string
		statuses []int
	}{
		"two at once":        {getInfo + getInfo, []int{200, 200}},
		"HTTP/1.0":           {"GET /v1/info HTTP/1.0\r\nHost: a\r\n\r\n", []int{505}},
		"HTTP/2":             {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", []int{505}},
		"no host":            {"GET /v1/info HTTP/1.1\r\n\r\n", []int{400}},
		"two hosts":          {"GET /v1/info HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", []int{400}},
		"a whole address":    {"GET https://a/v1/info HTTP/1.1\r\nHost: a\r\n\r\n", []int{404}},
		"a query":            {"GET /v1/info?a=b HTTP/1.1\r\nHost: a\r\n\r\n", []int{404}},
		"an escape":          {"GET /v1/%69nfo HTTP/1.1\r\nHost: a\r\n\r\n", []int{404}},
		"two slashes":        {"GET //v1/info HTTP/1.1\r\nHost: a\r\n\r\n", []int{404}},
		"options":            {"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", []int{404}},
		"connect":            {"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", []int{404}},
		"upgrade":            {"GET /v1/info HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", []int{200}},
		"last":               {"GET /v1/info HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" + getInfo, []int{200}},
		"length and chunks":  {"POST /v1/power HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n" + getInfo, []int{200, 200}},
		"two lengths":        {"POST /v1/power HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}" + getInfo, []int{400}},
		"negative length":    {"POST /v1/power HTTP/1.1\r\nHost: a\r\nContent-Length: -2\r\n\r\n{}" + getInfo, []int{400}},
		"an odd coding":      {"POST /v1/power HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n{}" + getInfo, []int{501}},
		"an odd chunk":       {"POST /v1/power HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n+2\r\n{}\r\n0\r\n\r\n" + getInfo, []int{400}},
		"a name with space":  {"GET /v1/info HTTP/1.1\r\nHost: a\r\nContent-Length : 3\r\n\r\n", []int{400}},
		"expect 100":         {"POST /v1/power HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n{}", []int{100, 200}},
		"expect 100, denied": {"POST /v1/nowhere HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n", []int{404}},
		"expect more":        {"POST /v1/power HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: much\r\n\r\n{}", []int{417}},
		"no HTTP":            {"\x00\x01\x02\r\n\r\n", []int{400}},
	} {
		t.Run(name, func(t *testing.T) {
			conn := over(t, from(t, "127.0.0.1", address), admin)
			say(conn, test.request)
			reader := bufio.NewReader(conn)
			for _, want := range test.statuses {
				if got, body := answered(t, reader); got != want {
					t.Errorf("%d %q, want %d", got, body, want)
				}
			}
			if last := test.statuses[len(test.statuses)-1]; name != "expect 100, denied" && (last != http.StatusOK || name == "last") {
				if more, err := io.ReadAll(reader); len(more) > 0 {
					t.Errorf("more comes: %q, %v", more, err)
				}
			}
		})
	}
}

// TestWhyNotLetIn connects as somebody whose certificate isn't accepted, and asks at
// once. The client always hears why, and never that the connection broke.
func TestWhyNotLetIn(t *testing.T) {
	c, other := newCluster(t, keystest.First(t)), newCluster(t, keystest.Second(t))
	_, address := start(t, modes(t, c, new(revocation.List))[route.Open], DefaultLimits())
	foreign := other.admin(now())
	for range 50 {
		conn := over(t, from(t, "127.0.0.1", address), foreign)
		for range 8 {
			if _, err := io.WriteString(conn, getInfo+strings.Repeat("a", 1<<10)); err != nil {
				t.Fatalf("the connection broke while the client asked: %v", err)
			}
		}
		_, err := conn.Read(make([]byte, 1))
		if err == nil || !strings.Contains(err.Error(), tls.AlertError(42).Error()) {
			t.Fatalf("the client hears %v", err)
		}
		conn.Close()
	}
}
