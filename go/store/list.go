package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/store/chunk"
	"powercloud.unidatum.com/go/store/manifest"
	"powercloud.unidatum.com/go/store/newest"
	"powercloud.unidatum.com/go/store/rollback"
	"powercloud.unidatum.com/go/store/scan"
)

// Listing is the objects whose names start with a prefix, in the order of their
// names. It takes 72 bytes and the name in memory for each, and 48 more for a small one
// of a listing to get.
type Listing struct {
	rows []row
	// toGet says that rows have the chunks of objects with one.
	toGet bool
}

// row is an object in little memory.
type row struct {
	name                     string
	size, modified, fileTime int64
	chunks                   int
	mode                     fs.FileMode
	chunk                    *chunk.Ref
}

// Len returns the number of objects. A nil Listing has none.
func (l *Listing) Len() int {
	if l == nil {
		return 0
	}
	return len(l.rows)
}

// Objects returns the objects one after the other.
func (l *Listing) Objects() iter.Seq[Object] {
	return func(yield func(Object) bool) {
		if l == nil {
			return
		}
		for i := range l.rows {
			if !yield(l.At(i)) {
				return
			}
		}
	}
}

// At returns the object with an index below Len.
func (l *Listing) At(i int) Object {
	r := l.rows[i]
	o := Object{Name: r.name, Size: r.size, Chunks: r.chunks, Modified: time.Unix(0, r.modified), FileMode: r.mode}
	if r.fileTime != 0 {
		o.FileTime = time.Unix(0, r.fileTime)
	}
	return o
}

// manifest returns as much of the manifest of the object with an index as reading it
// takes, if the listing has that, or nil.
func (l *Listing) manifest(i int) *manifest.Manifest {
	r := l.rows[i]
	if !l.toGet || r.chunks > 1 {
		return nil
	}
	m := &manifest.Manifest{Name: r.name, Size: r.size, FileTime: r.fileTime, FileMode: uint32(r.mode)}
	m.Version.Time = r.modified
	if r.chunk != nil {
		m.Chunks = []chunk.Ref{*r.chunk}
	}
	return m
}

// add adds the object of a result, of which nothing else is kept.
func (l *Listing) add(result newest.Result) {
	m := result.Manifest
	added := row{
		name: strings.Clone(m.Name), size: m.Size, modified: m.Version.Time, fileTime: m.FileTime,
		chunks: len(m.Chunks), mode: fs.FileMode(m.FileMode),
	}
	if l.toGet && len(m.Chunks) == 1 {
		ref := m.Chunks[0]
		added.chunk = &ref
	}
	l.rows = append(l.rows, added)
}

// List returns the objects whose names start with a prefix. A location that can't
// be listed is warned of, as long as those that can be must between them have
// every object that was ever acknowledged; else it is an error. Manifests of which
// no location has an authentic copy are reported by an error that comes along with
// the objects that could be read, and so are objects that were rolled back.
func (s *Store) List(ctx context.Context, prefix string) (*Listing, error) {
	return s.list(ctx, prefix, &Listing{})
}

// ListToGet is List for a caller that reads the objects next; see GetListed.
func (s *Store) ListToGet(ctx context.Context, prefix string) (*Listing, error) {
	return s.list(ctx, prefix, &Listing{toGet: true})
}

// list adds the objects whose names start with a prefix to a listing.
func (s *Store) list(ctx context.Context, prefix string, listing *Listing) (*Listing, error) {
	marks, err := s.options.Guard.All(ctx)
	if err != nil {
		return nil, err
	}
	seen, unreadable := 0, 0
	var example error
	scanner := scan.Scanner{Set: s.set, Finder: s.finder, Catalog: s.options.Catalog, Warn: s.options.Warn}
	failures, err := scanner.Manifests(ctx, nil, nil, func(name blob.Name, result newest.Result) {
		err := result.Err()
		if errors.Is(err, ErrNotFound) {
			return // It was removed between being listed and being read.
		}
		seen++
		if err != nil {
			unreadable++
			_ = marks.Compare(name.ID, nil) // It isn't hidden.
			example = err
			return
		}
		s.noteRead(result)
		if marks.Compare(name.ID, result.Manifest) != nil {
			return // Whatever it was: it isn't that any more.
		}
		if result.Live() && strings.HasPrefix(result.Manifest.Name, prefix) {
			listing.add(result)
		}
	})
	if err != nil {
		return nil, err
	}
	if err := s.enoughListed(failures); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(failures, func(err error) bool { return err != nil }) {
		marks.Hidden(func(rollback.Key) {})
	}
	slices.SortFunc(listing.rows, func(a, b row) int { return cmp.Compare(a.name, b.name) })
	if unreadable > 0 {
		return listing, fmt.Errorf("%d of %d manifests can't be read (%w); run 'pcctl check'", unreadable, seen, example)
	}
	return listing, marks.Err()
}

// enoughListed returns an error when so many locations could not be listed that
// they may hide an object.
func (s *Store) enoughListed(failures []error) error {
	failed := 0
	for i, err := range failures {
		if err == nil {
			continue
		}
		failed++
		location := s.set.Locations()[i]
		// Fewer locations than an acknowledged object is at can't hide one.
		if failed >= s.set.Acknowledged() {
			return fmt.Errorf("objects may be missing from the list, as %s can't be listed: %w", location, err)
		}
		s.warnOnce(fmt.Sprintf("%s can't be listed: %v", location, err))
	}
	return nil
}
