// Package lifecycle takes a node through its states. One that belongs to no cluster is
// blank, and waits to be enrolled or joins with a bundle. One that was restarted is
// locked, until its state volume is opened. Then it is open, a member at work.
//
// What the node's API answers and what its console shows follow from the state.
package lifecycle

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"powercloud.unidatum.com/go/api/route"
	"powercloud.unidatum.com/go/api/server"
	"powercloud.unidatum.com/go/cluster/joinbundle"
	"powercloud.unidatum.com/go/node/identity"
	"powercloud.unidatum.com/go/node/join"
	"powercloud.unidatum.com/go/node/state"
	"powercloud.unidatum.com/go/node/supervisor"
)

// Config is what a Node works with.
type Config struct {
	// Version is what the node runs.
	Version string
	// Place finds where the node keeps its state. It is asked once in each run.
	Place func(context.Context) (state.Place, error)
	// Bundle looks for a join bundle; its error wraps join.ErrNone if there is none.
	Bundle func(context.Context, join.Check) (*joinbundle.Bundle, error)
	// Listen opens the API's port.
	Listen func(context.Context) (net.Listener, error)
	Limits server.Limits
	// Member adds what answers while the node is open, but for what this package does,
	// and returns what else is to run then.
	Member func(*server.Handlers, *Member) []supervisor.Component
	// Show, if it isn't nil, gets each notice, before the API does what it tells of.
	Show func(Notice)
	// Power ends the machine's run, or pcd's: one of message.Reboot and message.PowerOff.
	Power func(action string) error
	// Random is a cryptographically secure source.
	Random io.Reader
	// Now is the clock. Synced reports whether it is known to be right; nil if it never is.
	Now    func() time.Time
	Synced func() bool
	Log    *slog.Logger
}

// Member is a node that is open.
type Member struct {
	Identity *identity.Kept
	Place    state.Place
	// Folder is where the node's state is.
	Folder string
}

// Node is a node's life. Create one with New; Run does the work.
type Node struct {
	Config

	mu     sync.Mutex
	notice Notice
	next   chan struct{}
}

// Notice is what a console shows of a node.
type Notice struct {
	// Text is what there is to know or to do, in whole lines.
	Text string
}

// New returns a node that hasn't begun.
func New(config Config) *Node {
	return &Node{Config: config, next: make(chan struct{})}
}

// Notice returns what consoles should show, and a channel that is closed when that has
// changed.
func (n *Node) Notice() (Notice, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.notice, n.next
}

func (n *Node) show(format string, args ...any) {
	notice := Notice{Text: fmt.Sprintf(format, args...)}
	n.mu.Lock()
	n.notice = notice
	close(n.next)
	n.next = make(chan struct{})
	n.mu.Unlock()
	if n.Show != nil {
		n.Show(notice)
	}
}

// run is one run of a node.
type run struct {
	*Node
	place    state.Place
	listener net.Listener
	server   *server.Server
	serving  chan error
	// opened is closed when the node is open, and gone when the run ends.
	opened, gone chan struct{}
	// placing is held while something is done with the place.
	placing sync.Mutex
}

// errSuperseded ends a run for one that keeps the state at a better place.
var errSuperseded = errors.New("there is a state disk now")

// Run takes the node through its states until ctx is done.
func (n *Node) Run(ctx context.Context) error {
	for {
		err := n.once(ctx)
		if !errors.Is(err, errSuperseded) {
			return err
		}
		n.Log.Info("a state disk has appeared, and the node starts over with it")
	}
}

func (n *Node) once(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	r := &run{Node: n, opened: make(chan struct{}), gone: make(chan struct{})}
	defer func() {
		close(r.gone)
		if err != nil && ctx.Err() == nil && !errors.Is(err, errSuperseded) {
			n.show("This node can't go on: %v.\n", err)
		}
		cancel()
		// Nobody is at the place any more when the next run looks what is there.
		r.placing.Lock()
		defer r.placing.Unlock()
		if r.serving != nil {
			// What it ended with is known, or ctx's.
			<-r.serving
		}
	}()
	if r.place, err = n.Place(ctx); err != nil {
		return err
	}
	return r.live(ctx)
}

// live goes from state to state.
func (r *run) live(ctx context.Context) error {
	found, err := r.place.Look()
	if err != nil {
		return err
	}
	folder := found.Folder
	switch found.Condition {
	case state.Blank:
		if folder, err = r.blank(ctx); err != nil {
			return err
		}
	case state.Locked:
		if folder, err = r.locked(ctx, found.Owners); err != nil {
			return err
		}
	}
	kept, err := identity.Load(folder)
	if err != nil {
		return err
	}
	return r.open(ctx, &Member{Identity: kept, Place: r.place, Folder: folder})
}

// serve has the API do what belongs to a state, and then shows what there is to know of
// it: a code that nothing answers to is no use.
func (r *run) serve(ctx context.Context, mode *server.Mode, notice string) (err error) {
	if r.server != nil {
		if err := r.server.SetMode(mode); err != nil {
			return err
		}
		r.show("%s", notice)
		return nil
	}
	if r.server, err = server.New(mode, r.Limits, r.Log); err != nil {
		return err
	}
	if r.listener, err = r.Listen(ctx); err != nil {
		return fmt.Errorf("the API can't listen: %w", err)
	}
	r.show("%s", notice)
	r.serving = make(chan error, 1)
	go func() { r.serving <- r.server.Serve(ctx, r.listener) }()
	r.Log.Info("API listening", "addr", r.listener.Addr().String())
	return nil
}

// wait waits until something has happened, or what serves has ended.
func (r *run) wait(ctx context.Context, happened <-chan struct{}) error {
	select {
	case <-happened:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case err := <-r.serving:
		r.serving = nil
		return errors.Join(errors.New("the API ended"), err)
	}
}

// errGone is what somebody hears whose request came to nothing because the run ended.
var errGone = errors.New("the node could not go on; its console says why")

// alone does something with the place, while nobody else does, unless the run has ended.
func (r *run) alone(do func() error) error {
	r.placing.Lock()
	defer r.placing.Unlock()
	select {
	case <-r.gone:
		return errGone
	default:
		return do()
	}
}

// untilOpen waits until the node is open. Whoever has made it so hears of it only then,
// and finds it as it is to be.
func (r *run) untilOpen() error {
	select {
	case <-r.opened:
		return nil
	case <-r.gone:
		return errGone
	}
}

// selfSigned returns a mode's certificate while there is none of a cluster.
func selfSigned(certificate *tls.Certificate) func() (*tls.Certificate, error) {
	return func() (*tls.Certificate, error) { return certificate, nil }
}

// mode returns what the API does in a state in which anyone may ask.
func mode(in route.State, certificate *tls.Certificate, handlers *server.Handlers) *server.Mode {
	return &server.Mode{State: in, Certificate: selfSigned(certificate), Handlers: handlers}
}
