package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/quorum"
	"powercloud.unidatum.com/go/store/newest"
	"powercloud.unidatum.com/go/store/rollback"
	"powercloud.unidatum.com/go/store/workers"
)

const (
	// maxFolder is how many manifests a location may have in a folder of the system's
	// own, with those of removed objects.
	maxFolder = 1 << 16
	// folderTries is how often a folder is listed whose objects are being replaced.
	folderTries = 32
)

// errFolderFull says that a location has more in a folder than is read.
var errFolderFull = fmt.Errorf("it has more than %d manifests in that folder; 'pcctl gc --tombstones' deletes those of removed objects", maxFolder)

// ListFolder returns the names of the objects in a folder of the system's own, such as
// ".powercloud/registry/", in no order, without going through all other manifests.
// Nobody may write an object there under a name that there ever was.
//
// All that was there at one moment is in the list, although a listing takes time: of
// objects that are written in the place of others, which are removed afterwards, there
// are always some. What can't be read is an error, also one that was rolled back.
// Locations that can't be listed are treated as by List.
func (s *Store) ListFolder(ctx context.Context, folder string) ([]string, error) {
	start := s.manifests.FolderStart(folder)
	marks, err := s.options.Guard.All(ctx)
	if err != nil {
		return nil, err
	}
	marks = marks.Within(start[:])
	for range folderTries {
		f := &folderScan{store: s, folder: folder, marks: marks}
		found, whole, err := s.listStart(ctx, start[:])
		if err == nil {
			err = workers.Each(ctx, s.atOnce(), found, f.read)
		}
		if err != nil {
			return nil, err
		}
		// What was removed before this listing began was replaced by something that is
		// in it, or was removed before it began as well. What was removed since then
		// may have been replaced by something that the listing had no eye for any more.
		if f.removed {
			marks.Forget()
			continue
		}
		if whole {
			marks.Hidden(func(rollback.Key) {})
		}
		return f.names, marks.Err()
	}
	return nil, fmt.Errorf("%s: %w", folder, ErrContended)
}

// errListed ends a listing of which enough was seen.
var errListed = errors.New("enough was listed")

// listStart returns the manifests whose blob IDs begin with some bytes, the first of
// which is zero, as far as any location lists them. whole reports whether all locations
// could be listed.
func (s *Store) listStart(ctx context.Context, start []byte) (found []blob.Name, whole bool, err error) {
	var first quorum.Group
	_, err = s.set.ListEach(ctx, blob.KindManifest, nil, func(group quorum.Group) error {
		first = group
		return errListed
	})
	if !errors.Is(err, errListed) {
		return nil, false, err
	}
	failures := slices.Clone(first.Failed)
	known := map[[blob.IDSize]byte]bool{}
	for i, infos := range first.Listed {
		infos = slices.DeleteFunc(infos, func(info blob.Info) bool { return !bytes.HasPrefix(info.Name.ID[:], start) })
		if len(infos) > maxFolder {
			failures[i] = errFolderFull
			continue
		}
		for _, info := range infos {
			if !known[info.Name.ID] {
				known[info.Name.ID] = true
				found = append(found, info.Name)
			}
		}
	}
	whole = !slices.ContainsFunc(failures, func(err error) bool { return err != nil })
	return found, whole, s.enoughListed(failures)
}

// folderScan is the manifests of a folder being read.
type folderScan struct {
	store  *Store
	folder string

	mu    sync.Mutex
	marks *rollback.Table
	names []string
	// removed says that one was found to be removed that wasn't known to be.
	removed bool
}

// read reads a manifest.
func (f *folderScan) read(ctx context.Context, name blob.Name) error {
	if f.store.isRemoved(name) {
		f.mu.Lock()
		defer f.mu.Unlock()
		_ = f.marks.Compare(name.ID, nil) // It isn't hidden.
		return nil
	}
	var err error
	f.store.finder.Visit(ctx, name, func(result newest.Result) {
		if err = ctx.Err(); err == nil {
			f.mu.Lock()
			defer f.mu.Unlock()
			err = f.found(name, result)
		}
	})
	return err
}

// found enters what was found of a manifest.
func (f *folderScan) found(name blob.Name, result newest.Result) error {
	s := f.store
	err := result.Err()
	gone := errors.Is(err, ErrNotFound) // Its tombstone was collected.
	switch {
	case err != nil && !gone && s.unacknowledged(result):
		_ = f.marks.Compare(name.ID, nil)
		s.warnOnce(fmt.Sprintf("%s of %s can't be read and is passed over, as so few locations have it that nobody was told that it is stored; run 'pcctl check'",
			name, f.folder))
	case err != nil && !gone:
		return fmt.Errorf("%s of %s can't be read (%w); run 'pcctl check'", name, f.folder, err)
	case !gone && f.marks.Compare(name.ID, result.Manifest) != nil:
		// The table has it.
	case result.Live():
		s.noteRead(result)
		f.names = append(f.names, result.Manifest.Name)
	default:
		s.noteRemoved(name)
		f.removed = true
	}
	return nil
}

// unacknowledged reports whether so many locations lack a manifest that the others are
// fewer than one that was acknowledged is at: no single location can make up objects
// that keep others from being read.
func (s *Store) unacknowledged(result newest.Result) bool {
	missing := 0
	for _, c := range result.Copies {
		if c.State == newest.Missing {
			missing++
		}
	}
	return missing > len(result.Copies)-s.set.Acknowledged()
}

func (s *Store) isRemoved(name blob.Name) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.removed[name.ID]
}

func (s *Store) noteRemoved(name blob.Name) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removed[name.ID] = true
}
