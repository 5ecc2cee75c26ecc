// Package registrytest keeps a registry's objects in memory for tests, has several
// writers take turns at them in every order, and fails, forgets and brings back as
// stores and those who use them do.
package registrytest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
)

// ErrCut is what a call fails with that a Hook cuts off.
var ErrCut = errors.New("cut off")

// Op is a call of a store.
type Op string

// The calls of a store.
const (
	List   Op = "list"
	Read   Op = "read"
	Write  Op = "write"
	Remove Op = "remove"
)

// Outcome is what becomes of a call.
type Outcome int

const (
	// Done is that it does what it should.
	Done Outcome = iota
	// Undone is that it fails and does nothing.
	Undone
	// Unanswered is that it does what it should, and fails.
	Unanswered
	// Torn is that a write fails, and has left an object that is there or not, from one
	// call to the next, as Objects.Shows says.
	Torn
)

// Objects is a store in memory. The zero value is empty and works. Its methods may be
// called from several goroutines at once.
type Objects struct {
	// Hook, unless nil, is asked before every call what is to become of it.
	Hook func(op Op, name string) Outcome
	// Shows, unless nil, is asked whether a call shows an object that needn't be there: a
	// torn one, or one that was removed and that some location has yet. Without it the
	// first is shown, the other not.
	Shows func(name string, removed bool) bool

	mu sync.Mutex
	// names are those of all objects that there ever were, in the order of writing.
	names   []string
	content map[string][]byte
	removed map[string]bool
	torn    map[string]bool
	writes  int
}

func (o *Objects) outcome(ctx context.Context, op Op, name string) (Outcome, error) {
	if err := ctx.Err(); err != nil {
		return Undone, err
	}
	outcome := Done
	if o.Hook != nil {
		outcome = o.Hook(op, name)
	}
	if outcome == Done {
		return Done, nil
	}
	return outcome, fmt.Errorf("%s %s: %w", op, name, ErrCut)
}

// shown reports whether there is an object.
func (o *Objects) shown(name string) bool {
	_, ok := o.content[name]
	removed := o.removed[name]
	switch {
	case !ok, !removed && !o.torn[name]:
		return ok
	case o.Shows == nil:
		return !removed
	}
	return o.Shows(name, removed)
}

// List returns the names of the objects whose names begin with prefix.
func (o *Objects) List(ctx context.Context, prefix string) ([]string, error) {
	if outcome, err := o.outcome(ctx, List, prefix); outcome != Done {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(o.names), func(name string) bool {
		return !strings.HasPrefix(name, prefix) || !o.shown(name)
	}), nil
}

// Read returns an object.
func (o *Objects) Read(ctx context.Context, name string, limit int64) ([]byte, error) {
	if outcome, err := o.outcome(ctx, Read, name); outcome != Done {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.shown(name) {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	if int64(len(o.content[name])) > limit {
		return nil, fmt.Errorf("%s is larger than %d bytes", name, limit)
	}
	return o.content[name], nil
}

// Write stores an object, or replaces one.
func (o *Objects) Write(ctx context.Context, name string, content []byte) error {
	outcome, err := o.outcome(ctx, Write, name)
	if outcome == Undone {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.content == nil {
		o.content, o.removed, o.torn = map[string][]byte{}, map[string]bool{}, map[string]bool{}
	}
	if _, again := o.content[name]; !again {
		o.names = append(o.names, name)
	}
	o.writes++
	o.content[name], o.removed[name], o.torn[name] = content, false, outcome == Torn
	return err
}

// Remove removes an object.
func (o *Objects) Remove(ctx context.Context, name string) error {
	outcome, err := o.outcome(ctx, Remove, name)
	if outcome == Undone {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.content[name]; ok {
		o.removed[name] = true
	}
	return err
}

// Writes returns how many objects were written.
func (o *Objects) Writes() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.writes
}

// Names returns the objects that are there, in the order of writing.
func (o *Objects) Names() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(o.names), func(name string) bool { return o.removed[name] || o.torn[name] })
}

// Snapshot returns a copy of the store, without its hooks.
func (o *Objects) Snapshot() *Objects {
	o.mu.Lock()
	defer o.mu.Unlock()
	return &Objects{
		names: slices.Clone(o.names), content: maps.Clone(o.content),
		removed: maps.Clone(o.removed), torn: maps.Clone(o.torn), writes: o.writes,
	}
}
