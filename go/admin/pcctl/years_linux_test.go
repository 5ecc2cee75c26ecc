package pcctl

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"powercloud.unidatum.com/go/cluster/registry"
	"powercloud.unidatum.com/go/node/lifecycle"
	"powercloud.unidatum.com/go/node/lifecycle/lifecycletest"
	"powercloud.unidatum.com/go/node/state"
)

// years is a trial in which time, pcctl's and the nodes', goes by when it is told to.
type years struct {
	*trial

	mu  sync.Mutex
	now time.Time
}

func newYears(t *testing.T) *years {
	t.Helper()
	y := &years{trial: newNodes(t), now: time.Date(2026, 10, 28, 9, 0, 0, 0, time.UTC)}
	y.bed.Now = y.now
	return y
}

// clock is that of the nodes.
func (y *years) clock() time.Time {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.now
}

// pass lets time go by for everybody.
func (y *years) pass(d time.Duration) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.now = y.now.Add(d)
	y.bed.Now = y.now
}

// start starts a node.
func (y *years) start(place state.Place, change ...func(*lifecycle.Config)) *lifecycletest.Node {
	y.t.Helper()
	return lifecycletest.Start(y.t, place, func(c *lifecycle.Config) {
		c.Now = y.clock
		c.Synced = func() bool { return true }
		for _, more := range change {
			more(c)
		}
	})
}

// enroll starts a node and makes it a member.
func (y *years) enroll(name string) *lifecycletest.Node {
	y.t.Helper()
	n := y.start(newVolume(y.t))
	y.want(0, "node", "enroll", n.Address, n.EnrollmentCode(), name)
	return n
}

// renews runs node renew, which must print a table and, if it fails, an error.
func (y *years) renews(failure string, table string, names ...string) {
	y.t.Helper()
	status := 0
	if failure != "" {
		status, failure = 1, "pcctl: "+failure+"\n"
	}
	y.want(status, append([]string{"node", "renew"}, names...)...)
	y.wantStdout(table)
	y.wantSaid(failure)
}

// wantSaid is wantStderr but for what is said of an admin certificate whose time is over
// too.
func (y *years) wantSaid(want string) {
	y.t.Helper()
	if got := strings.TrimPrefix(y.stderr.String(), "admin certificate renewed (valid 30 days)\n"); got != want {
		y.t.Errorf("standard error:\n%s\nwant:\n%s", got, want)
	}
}

// find returns what the registry has of a node.
func (s *trial) find(name string) *registry.Node {
	s.t.Helper()
	n, err := s.registry().Find(name)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

// wire carries connections to a node until they are dropped, or it is torn.
type wire struct {
	net.Listener
	to string

	mu    sync.Mutex
	conns []net.Conn
}

func newWire(t *testing.T, to string) *wire {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{Listener: listener, to: to}
	var carrying sync.WaitGroup
	carrying.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			carrying.Go(func() { w.carry(near) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		w.drop()
		carrying.Wait()
	})
	return w
}

func (w *wire) carry(near net.Conn) {
	defer near.Close()
	far, err := net.Dial("tcp", w.to)
	if err != nil {
		return
	}
	defer far.Close()
	w.mu.Lock()
	w.conns = append(w.conns, near, far)
	w.mu.Unlock()
	go func() {
		_, _ = io.Copy(far, near)
		_ = far.Close()
	}()
	_, _ = io.Copy(near, far)
}

// drop ends the connections that there are.
func (w *wire) drop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, conn := range w.conns {
		_ = conn.Close()
	}
	w.conns = nil
}

// when is a log that does something when a line has a text.
type when struct {
	text string
	do   func()
}

// Write looks for the text.
func (w when) Write(line []byte) (int, error) {
	if strings.Contains(string(line), w.text) {
		w.do()
	}
	return len(line), nil
}
