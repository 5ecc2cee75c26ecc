package dir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"sync/atomic"
)

// syncers is how many folders are synced at once: a journal writes them out
// together.
const syncers = 8

// errReplaced says that folders with blobs that had not been flushed went away.
var errReplaced = errors.New("the directory, or a folder in it, was removed or replaced while it was in use; run the command again")

// flushing keeps account of the folders whose entries don't outlast a power cut
// yet, and lets calls of Flush at the same time share their work.
type flushing struct {
	// turn is held by the call that is syncing.
	turn chan struct{}

	mu  sync.Mutex
	due map[duePlace]struct{}
	// next is the round that covers everything marked so far, nil when nobody
	// waits for it.
	next *round
	// lost is what no flush can make good again. Every later Flush fails: nobody
	// can tell which blobs it would have to do without.
	lost error
}

type duePlace struct {
	tree  *tree
	place place
}

// round is one run over the folders that are due, shared by its callers.
type round struct {
	done chan struct{}
	err  error
}

func (f *flushing) init() {
	f.turn = make(chan struct{}, 1)
	f.due = map[duePlace]struct{}{}
}

// mark notes that a folder's entries have changed, or are relied upon. So are
// the entries that lead to the folder, until they have been synced once: whoever
// made it, perhaps another process, may not have got to that.
func (f *flushing) mark(t *tree, p place) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.due[duePlace{t, p}] = struct{}{}
	for p != placeParent && !t.anchored[p].Load() {
		p = p.parent()
		f.due[duePlace{t, p}] = struct{}{}
	}
}

// abandon notes that a tree is gone.
func (f *flushing) abandon(t *tree) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for d := range f.due {
		if d.tree == t {
			f.lost = errReplaced
			delete(f.due, d)
		}
	}
}

// Flush syncs the folders in which something has changed; see blob.Location. It
// can't be interrupted while it does, which calls at the same time wait for.
func (l *Location) Flush(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f := &l.flush
	f.mu.Lock()
	if len(f.due) == 0 && f.next == nil && f.lost == nil && len(f.turn) == 0 {
		f.mu.Unlock()
		return nil
	}
	if f.next == nil {
		f.next = &round{done: make(chan struct{})}
	}
	mine := f.next
	f.mu.Unlock()

	select {
	case <-mine.done:
		return mine.err
	case <-ctx.Done():
		return ctx.Err()
	case f.turn <- struct{}{}:
	}
	defer func() { <-f.turn }()
	select {
	case <-mine.done: // by another caller, just before
	default:
		// Nobody joins it any more: what is marked from here on may come too late.
		f.mu.Lock()
		due := f.due
		f.due, f.next = map[duePlace]struct{}{}, nil
		f.mu.Unlock()
		mine.err = l.sync(due)
		close(mine.done)
	}
	return mine.err
}

// sync syncs the folders that are due and notes what is settled by that.
func (l *Location) sync(due map[duePlace]struct{}) error {
	f := &l.flush
	err := l.checkInPlace(due)
	if err == nil {
		err = l.syncFolders(due)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost == nil {
		// After a failed sync, a second one that succeeds proves nothing: the
		// system may have dropped what it couldn't write.
		f.lost = err
	}
	if f.lost != nil {
		return f.lost
	}
	for d := range due {
		_, whole := due[duePlace{d.tree, d.place.parent()}]
		// Only of a folder that is kept open is it known that it stays the same.
		if whole && d.place != placeParent && d.tree.folders[d.place].Load() != nil {
			d.tree.anchored[d.place].Store(true)
		}
	}
	return nil
}

// checkInPlace makes sure that the blobs are where the location's path leads.
func (l *Location) checkInPlace(due map[duePlace]struct{}) error {
	checked := map[*tree]bool{}
	for d := range due {
		if checked[d.tree] {
			continue
		}
		checked[d.tree] = true
		switch current, err := d.tree.root().isAt(l.path); {
		case err != nil:
			return fmt.Errorf("flushing: %w", err)
		case !current:
			l.tree.CompareAndSwap(d.tree, nil)
			return errReplaced
		}
	}
	return nil
}

// syncFolders syncs the folders, several at once.
func (l *Location) syncFolders(due map[duePlace]struct{}) error {
	work := make(chan duePlace)
	var failed atomic.Pointer[error]
	var wait sync.WaitGroup
	for range min(len(due), syncers) {
		wait.Go(func() {
			for d := range work {
				if err := l.syncFolder(d); err != nil {
					err = fmt.Errorf("flushing %s: %w", d.place, err)
					failed.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	for d := range due {
		work <- d
	}
	close(work)
	wait.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

func (l *Location) syncFolder(d duePlace) error {
	if d.place != placeParent {
		in, done, err := d.tree.folder(d.place, false)
		if err != nil {
			return err
		}
		defer done()
		return in.sync()
	}
	parent, err := l.openRoot(filepath.Dir(l.path))
	if errors.Is(err, fs.ErrPermission) && !l.made.Load() {
		// A directory that was made for us in one that we may not read: whoever
		// made it saw to it.
		return nil
	}
	if err != nil {
		return err
	}
	defer parent.close()
	return parent.sync()
}
