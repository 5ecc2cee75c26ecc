package dir

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"powercloud.unidatum.com/go/blob"
)

var _ blob.Amender = (*Location)(nil)

// errChanged says that a file isn't the one any more that was read.
var errChanged = errors.New("it was replaced meanwhile")

// Amend changes a blob; see blob.Amender. A file that replaces another one is a file of
// its own, so that the two can be told apart. Of several who replace one at once, all on
// this machine or on a file system that passes locks on, one at a time looks and
// renames; elsewhere what is stored in the microseconds between goes unnoticed.
func (l *Location) Amend(ctx context.Context, name blob.Name, limit int64, change blob.Change) error {
	for range blob.AmendTries {
		mark := ""
		if info, err := l.Stat(ctx, name); err == nil {
			mark = info.Mark
		} else if !errors.Is(err, blob.ErrNotFound) {
			return err
		}
		data, found := l.Get(ctx, name, nil, limit)
		switch {
		case !blob.Answered(found):
			return found
		case (mark == "") != errors.Is(found, blob.ErrNotFound):
			continue // It has come or gone meanwhile.
		}
		next, err := change(data, found)
		if err != nil || next == nil {
			return err
		}
		if mark == "" {
			err = l.store(ctx, name, next, installNew)
		} else {
			err = l.store(ctx, name, next, l.installOver(mark))
		}
		if !errors.Is(err, blob.ErrExists) && !errors.Is(err, errChanged) {
			return err
		}
	}
	return blob.ErrContended
}

// installOver returns the install of a file in the place of the one with a mark.
func (l *Location) installOver(mark string) install {
	return func(temporary folder, temporaryName string, to folder, name string) error {
		// The lock of a folder is this process's, so that its goroutines need another.
		l.amending.Lock()
		defer l.amending.Unlock()
		defer lockFolder(to)()
		switch now, err := to.stat(name); {
		case errors.Is(err, fs.ErrNotExist):
			return errChanged
		case err != nil:
			return err
		case !now.regular || now.mark() != mark:
			return errChanged
		}
		return temporary.rename(temporaryName, to, name)
	}
}

// How long a folder's lock is waited for. Whoever has it needs it for microseconds, and
// nobody who can write to the location may hold others up for ever.
const (
	lockPatience = time.Second
	lockPause    = time.Millisecond
)

// lockFolder locks a folder, if its file system and those who have the lock let it.
func lockFolder(f folder) (unlock func()) {
	for waited := time.Duration(0); waited < lockPatience; waited += lockPause {
		unlock, busy := f.lock()
		if !busy {
			return unlock
		}
		time.Sleep(lockPause)
	}
	return func() {}
}
