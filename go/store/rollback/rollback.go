// Package rollback compares what storage locations show of objects with the version
// marks that the cluster's nodes keep, and so finds out when all locations show an
// older version than there was, or none.
//
// Marks are read before the locations are, and recorded after a write is durable.
// So what storage shows is at least as new as its mark, unless it was rolled back.
package rollback

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/store/manifest"
)

const (
	// patience is how long the nodes may take to answer.
	patience = 10 * time.Second
	// maxMarks is how many marks are read at most: more than any cluster has
	// objects, and no more than fit into memory.
	maxMarks = 16 << 20
)

// maxTime bounds the times of marks, in nanoseconds since 1970: a version that is
// newer than any mark must be possible.
var maxTime = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()

// Key is the blob ID of an object's manifest: the nodes learn no names.
type Key = [blob.IDSize]byte

// Mark is what is recorded of an object's newest version.
type Mark struct {
	// Time is the version's, in nanoseconds since 1970 UTC.
	Time int64
	// Deleted says that the version is a tombstone. Its mark stays when the
	// tombstone is deleted, so that no location can bring the object back.
	Deleted bool
}

// Trust says how much an answer of the nodes is worth.
type Trust int

const (
	// Majority is an answer that a majority of the nodes agreed on.
	Majority Trust = iota
	// Minority is one node's own copy, as there is no majority.
	Minority
)

// Marks are the version marks that the nodes of a cluster keep. An error means that
// nobody answers. Its methods may be called from several goroutines at once.
type Marks interface {
	// Get returns the marks of those manifests that have one.
	Get(ctx context.Context, ids []Key) (map[Key]Mark, Trust, error)
	// Each calls fn for every mark, in any order. An error from fn ends it and is
	// returned as it is.
	Each(ctx context.Context, fn func(Key, Mark) error) (Trust, error)
	// Record records marks. One that isn't newer than what is recorded changes
	// nothing.
	Record(ctx context.Context, marks map[Key]Mark) error
}

// Error says that storage shows an older version of an object than is recorded, or
// none.
type Error struct {
	// Object names the object, or its manifest if the name isn't known.
	Object string
	// Recorded is its mark.
	Recorded Mark
	// Found is the time of the version that was found, in nanoseconds since 1970
	// UTC; Nowhere says that none was.
	Found   int64
	Nowhere bool
}

func (e *Error) Error() string {
	what := "version"
	if e.Recorded.Deleted {
		what = "removal"
	}
	found := "no location has any"
	if !e.Nowhere {
		found = "the newest found is of " + stamp(e.Found)
	}
	return fmt.Sprintf("store: rollback: %s: its %s of %s is recorded, and %s: the storage serves an old version; "+
		"run 'pcctl check' to see which location is behind, or put it again", e.Object, what, stamp(e.Recorded.Time), found)
}

// stamp writes a version's time.
func stamp(nanoseconds int64) string {
	return time.Unix(0, nanoseconds).UTC().Format(time.RFC3339Nano)
}

// Compare returns an *Error unless the newest version that was found, or nil for
// none, is as new as a mark.
func Compare(object string, mark Mark, found *manifest.Manifest) error {
	switch {
	case found == nil && !mark.Deleted:
		return &Error{Object: object, Recorded: mark, Nowhere: true}
	case found != nil && found.Version.Time < mark.Time:
		return &Error{Object: object, Recorded: mark, Found: found.Version.Time}
	}
	return nil
}

// Guard asks for marks, records them, and warns when that isn't possible. A nil
// Guard knows no marks and warns of nothing: there is no consensus.
type Guard struct {
	marks Marks
	warn  func(string)

	unprotected, minority sync.Once
}

// New returns a Guard that uses the given marks; nil when they are. What it has to
// warn of it tells warn, in a line, once.
func New(marks Marks, warn func(string)) *Guard {
	if marks == nil {
		return nil
	}
	if warn == nil {
		warn = func(string) {}
	}
	return &Guard{marks: marks, warn: warn}
}

// failed warns that there is no protection, unless the caller gave up.
func (g *Guard) failed(ctx context.Context, err error) error {
	if ctxErr := ctx.Err(); ctxErr != nil {
		return ctxErr
	}
	g.unprotected.Do(func() { g.warn(fmt.Sprintf("no rollback protection this time (%v)", err)) })
	return nil
}

// answered warns when an answer is one node's.
func (g *Guard) answered(trust Trust) {
	if trust == Majority {
		return
	}
	g.minority.Do(func() {
		g.warn("no majority of the nodes answers: rollback protection uses one node's copy, which may miss recent writes")
	})
}

// check refuses a mark that can't be any version's.
func (m Mark) check() error {
	if m.Time > maxTime {
		return errors.New("a node's record has a version of " + stamp(m.Time))
	}
	return nil
}

// Get returns the marks of those manifests that have one. It fails only when the
// context ends.
func (g *Guard) Get(ctx context.Context, ids ...Key) (map[Key]Mark, error) {
	if g == nil || len(ids) == 0 {
		return nil, ctx.Err()
	}
	asking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	marks, trust, err := g.marks.Get(asking, ids)
	for _, mark := range marks {
		if err == nil {
			err = mark.check()
		}
	}
	if err != nil {
		return nil, g.failed(ctx, err)
	}
	g.answered(trust)
	return marks, nil
}

// Record records the versions of manifests that a quorum of locations has. It fails
// only when the context ends.
func (g *Guard) Record(ctx context.Context, marks map[Key]Mark) error {
	if err := g.MustRecord(ctx, marks); err != nil {
		return g.failed(ctx, err)
	}
	return nil
}

// MustRecord is Record for a caller that can't do without.
func (g *Guard) MustRecord(ctx context.Context, marks map[Key]Mark) error {
	if g == nil || len(marks) == 0 {
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return g.marks.Record(asking, marks)
}

// MarkOf returns the mark of a version.
func MarkOf(m *manifest.Manifest) Mark { return Mark{Time: m.Version.Time, Deleted: m.Deleted} }
