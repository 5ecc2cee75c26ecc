package daemon

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"powercloud.unidatum.com/go/node/lifecycle"
	"powercloud.unidatum.com/go/node/network"
)

// known is something that changes, and how often it was asked for.
type known[T any] struct {
	mu      sync.Mutex
	value   T
	changed chan struct{}
	asked   int
}

func newKnown[T any](value T) *known[T] { return &known[T]{value: value, changed: make(chan struct{})} }

func (k *known[T]) current() (T, <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked++
	return k.value, k.changed
}

func (k *known[T]) set(value T) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.value = value
	changed := k.changed
	k.changed = make(chan struct{})
	close(changed)
}

func at(text string) network.State {
	return network.State{Interfaces: []network.Interface{{Name: "eth0", Addresses: []netip.Prefix{netip.MustParsePrefix(text)}}}}
}

// screen is a console that can fail.
type screen struct {
	mu   sync.Mutex
	text strings.Builder
	err  error
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, s.err
	}
	return s.text.Write(p)
}

// fail has writes fail, or succeed again.
func (s *screen) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// take returns what is on the screen, and clears it.
func (s *screen) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.text.Reset()
	return s.text.String()
}

func TestConsole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notice, net, to := newKnown(lifecycle.Notice{}), newKnown(network.State{}), &screen{}
		began := 0
		c := &console{to: to, version: "dev", network: net.current, notice: notice.current, began: func() { began++ }}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.run(ctx) }()
		wait := func(d time.Duration, want string) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			if got := to.take(); got != want {
				t.Errorf("the console has %q, not %q", got, want)
			}
		}
		wait(time.Hour, "")
		if began != 0 {
			t.Error("it has begun without anything to show")
		}
		notice.set(lifecycle.Notice{Text: "waits\n"})
		wait(0, "\nPowerCloud dev\naddresses: no address yet\nwaits\n\n")
		net.set(at("192.0.2.1/24"))
		wait(settle/2, "")
		net.set(at("192.0.2.2/24"))
		wait(settle/2, "")
		wait(settle/2, "\nPowerCloud dev\naddresses: 192.0.2.2\nwaits\n\n")
		// What changes otherwise, or not at all, isn't shown again.
		notice.set(lifecycle.Notice{Text: "waits\n"})
		net.set(network.State{Interfaces: at("192.0.2.2/24").Interfaces, NTP: []netip.Addr{netip.MustParseAddr("192.0.2.9")}})
		wait(time.Hour, "")
		notice.set(lifecycle.Notice{Text: "open\n"})
		wait(0, "\nPowerCloud dev\naddresses: 192.0.2.2\nopen\n\n")
		if most := 30; notice.asked > most || net.asked > most {
			t.Errorf("it has looked %d and %d times", notice.asked, net.asked)
		}
		// A link that comes and goes.
		notice.set(lifecycle.Notice{Text: "locked\n"})
		for i := 0; to.text.Len() == 0; i++ {
			if time.Duration(i)*time.Second > mostSettle+settle {
				t.Fatal("nothing is shown")
			}
			net.set(at([]string{"192.0.2.3/24", "192.0.2.4/24"}[i%2]))
			time.Sleep(time.Second)
			synctest.Wait()
		}
		if got := to.take(); !strings.Contains(got, "locked\n") {
			t.Errorf("the console has %q", got)
		}
		if began != 1 {
			t.Errorf("it has begun %d times", began)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestLogMemory(t *testing.T) {
	proc := t.TempDir()
	var lines strings.Builder
	c := Config{Log: newLog(&lines)}
	c.logMemory(proc)
	if err := os.WriteFile(filepath.Join(proc, "meminfo"), []byte("MemTotal: 990000 kB\nMemFree: 1 kB\nMemAvailable: 950001 kB\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.logMemory(proc)
	warning, line, _ := strings.Cut(lines.String(), "\n")
	if !strings.HasPrefix(warning, `level=WARN msg="how much memory there is can't be told" svc=pcd err=`) {
		t.Errorf("without figures it logs %q", warning)
	}
	if want := "level=INFO msg=memory svc=pcd total_kib=990000 available_kib=950001\n"; line != want {
		t.Errorf("it logs %q, want %q", line, want)
	}
}

// TestConsoleThatFails: what could not be written is written at the next start.
func TestConsoleThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notice, net, to := newKnown(lifecycle.Notice{Text: "waits\n"}), newKnown(network.State{}), &screen{err: errors.New("gone")}
		c := &console{to: to, version: "dev", network: net.current, notice: notice.current}
		if err := c.run(t.Context()); !errors.Is(err, to.err) {
			t.Errorf("%v", err)
		}
		to.fail(nil)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.run(ctx) }()
		synctest.Wait()
		if got := to.take(); got != "\nPowerCloud dev\naddresses: no address yet\nwaits\n\n" {
			t.Errorf("the console has %q", got)
		}
		cancel()
		<-ended
	})
}
