// Package supervisor runs the parts of a program as a tree of components, and
// starts each one again by itself, with backoff, when it ends.
//
// A component is anything with a Run function; a tree is a component too, so
// trees nest. A failing component never takes its siblings with it: what they
// share, they share through interfaces that outlive each run.
package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"powercloud.unidatum.com/go/node/backoff"
)

// ErrDone is what a component returns that has nothing left to do. It isn't
// started again.
var ErrDone = errors.New("the component is done")

// A Component is one part of a program.
type Component struct {
	// Name says in a word or two what it is; its log lines carry it.
	Name string
	// Run does the work until ctx is done. It owns the goroutines that it
	// starts and has ended them when it returns. Whatever else than ErrDone it
	// returns before ctx is done, nil too, has it started again.
	Run func(ctx context.Context) error
}

// Status is what a component is doing.
type Status struct {
	Name string
	// Running is false while it waits to be started again, and once it is done.
	Running bool
	// Starts is how often it was started.
	Starts int
	// LastError is what its last run ended with, if one has ended.
	LastError string
}

// Tree runs components. Create one with New.
type Tree struct {
	components []Component
	log        *slog.Logger
	policy     backoff.Policy
	after      func(time.Duration) <-chan time.Time
	now        func() time.Time

	mu       sync.Mutex
	statuses []Status
}

// Options are what a Tree may be given.
type Options struct {
	// Log is told about components that end; slog's default when nil.
	Log *slog.Logger
	// Policy is how long a component waits to be started again.
	Policy backoff.Policy
	// After and Now are the time's; the real ones when nil.
	After func(time.Duration) <-chan time.Time
	Now   func() time.Time
}

// New returns a tree of components. Their names must differ.
func New(options Options, components ...Component) *Tree {
	t := &Tree{
		components: components, policy: options.Policy,
		log: options.Log, after: options.After, now: options.Now,
		statuses: make([]Status, len(components)),
	}
	if t.log == nil {
		t.log = slog.Default()
	}
	if t.after == nil {
		t.after = time.After
	}
	if t.now == nil {
		t.now = time.Now
	}
	for i, c := range components {
		t.statuses[i].Name = c.Name
	}
	return t
}

// Run runs the components until ctx is done, and returns when all have ended.
// The error is ctx's, or ErrDone when every component was done before.
func (t *Tree) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for i := range t.components {
		running.Go(func() { t.keep(ctx, i) })
	}
	running.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	return ErrDone
}

// Statuses returns what each component is doing, in the tree's order.
func (t *Tree) Statuses() []Status {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.statuses)
}

// keep runs one component again and again.
func (t *Tree) keep(ctx context.Context, i int) {
	c := t.components[i]
	waits := backoff.New(t.policy)
	for ctx.Err() == nil {
		began := t.now()
		t.update(i, func(s *Status) { s.Running = true; s.Starts++ })
		err := run(ctx, c)
		t.update(i, func(s *Status) {
			s.Running = false
			if err != nil {
				s.LastError = err.Error()
			}
		})
		if ctx.Err() != nil || errors.Is(err, ErrDone) {
			return
		}
		wait := waits.Ended(t.now().Sub(began))
		t.log.Warn("a component ended and will be started again", "component", c.Name, "wait", wait, "err", err)
		select {
		case <-ctx.Done():
		case <-t.after(wait):
		}
	}
}

func (t *Tree) update(i int, change func(*Status)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.statuses[i])
}

// PanicError is a component's panic as an error.
type PanicError struct {
	Value any
	// Stack is the stack of the goroutine that panicked.
	Stack []byte
}

// Error has the stack too: the log is the only place where it can be seen.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v\n%s", e.Value, e.Stack) }

// run runs a component once. A panic in its own goroutine becomes an error.
func run(ctx context.Context, c Component) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	return c.Run(ctx)
}
