// Package scan goes through the manifests at a set's locations, the newest version
// of each, and reads only those that the catalog doesn't know.
package scan

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/quorum"
	"powercloud.unidatum.com/go/store/catalog"
	"powercloud.unidatum.com/go/store/newest"
)

// workers is how many manifests are read at once, if no location is far away.
const workers = 16

// Scanner goes through one cluster's manifests.
type Scanner struct {
	Set    *quorum.Set
	Finder *newest.Finder
	// Catalog is what is known already, or nil.
	Catalog *catalog.Catalog
	// Warn is told, in a line, that the catalog can't be saved. It may be nil.
	Warn func(string)
}

// Manifests calls visit for every manifest that any location lists, from one
// goroutine at a time. What visit is given counts as memory in use until it
// returns: it must keep nothing of a large manifest. expect, unless it is nil, is
// told how many manifests lie ahead, a part at a time.
//
// Locations that failed before, by their index, aren't asked; failed may be nil.
// The errors returned are the locations', in their order. The last result is ctx's
// error.
func (s *Scanner) Manifests(ctx context.Context, failed []error, expect func(int64), visit func(blob.Name, newest.Result)) ([]error, error) {
	w := &work{Scanner: s, visit: visit, jobs: make(chan job)}
	for _, location := range s.Set.Locations() {
		w.locations = append(w.locations, location)
		w.keys = append(w.keys, catalog.Location(location.String()))
	}
	group, groupCtx := errgroup.WithContext(ctx)
	for range max(workers, s.Set.Concurrency()) {
		group.Go(func() error { return w.run(groupCtx) })
	}
	var errs []error
	group.Go(func() error {
		defer close(w.jobs)
		var err error
		var known quorum.Known
		if s.Catalog != nil {
			known = w.unchanged
		}
		errs, err = s.Set.ListChanged(groupCtx, blob.KindManifest, failed, known, func(listed quorum.Group) error {
			return w.handOut(groupCtx, listed, expect)
		})
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if err, ok := w.unsaved.Load().(error); ok && s.Warn != nil {
		s.Warn(err.Error())
	}
	return errs, ctx.Err()
}

// work is a scan under way.
type work struct {
	*Scanner
	locations []blob.Location
	keys      []catalog.LocationKey
	jobs      chan job
	unsaved   atomic.Value // of error
	shards    shards

	mu    sync.Mutex
	visit func(blob.Name, newest.Result)
}

// part is the manifests whose IDs begin with one byte.
type part struct {
	quorum.Group
	shard *catalog.Shard
	// partial says of each location that the shard doesn't know just what the
	// location listed.
	partial []atomic.Bool
	// left counts the jobs that are not done, and one more until all are handed
	// out.
	left atomic.Int64
}

// job is one manifest.
type job struct {
	part *part
	name blob.Name
	// at says what each location lists of it.
	at []listed
}

// listed is what a location lists of a manifest.
type listed struct {
	// is says that it lists it.
	is bool
	// mark is the version mark, unless nothing has changed in the section: then it
	// wasn't asked.
	mark string
}

// unchanged tells a listing what it needn't list; see quorum.Known.
func (w *work) unchanged(location int, first byte, mark string) bool {
	return w.shards.load(w.Catalog, first).Unchanged(w.keys[location], mark)
}

// handOut hands out what the locations list of one first byte.
func (w *work) handOut(ctx context.Context, group quorum.Group, expect func(int64)) error {
	p := &part{Group: group, partial: make([]atomic.Bool, len(w.locations))}
	if w.Catalog != nil {
		p.shard = w.shards.take(w.Catalog, group.First)
	}
	jobs := w.jobsOf(p)
	if len(jobs) == 0 && w.Catalog == nil {
		return nil
	}
	if expect != nil {
		expect(int64(len(jobs)))
	}
	p.left.Store(int64(len(jobs)) + 1)
	for _, j := range jobs {
		select {
		case w.jobs <- j:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	w.settle(p)
	return nil
}

// jobsOf brings together what the locations list of the same name.
func (w *work) jobsOf(p *part) []job {
	var jobs []job
	index := map[[32]byte]int{}
	add := func(id [32]byte, location int, mark string) {
		at, known := index[id]
		if !known {
			at = len(jobs)
			index[id] = at
			name := blob.Name{Kind: blob.KindManifest, ID: id}
			jobs = append(jobs, job{part: p, name: name, at: make([]listed, len(w.locations))})
		}
		jobs[at].at[location] = listed{true, mark}
	}
	for i, infos := range p.Listed {
		for _, info := range infos {
			add(info.Name.ID, i, info.Mark)
		}
		if p.Unchanged[i] {
			for _, id := range p.shard.At(w.keys[i]) {
				add(id, i, "")
			}
		}
	}
	slices.SortFunc(jobs, func(a, b job) int { return bytes.Compare(a.name.ID[:], b.name.ID[:]) })
	return jobs
}

// run visits manifests until there are no more.
func (w *work) run(ctx context.Context) error {
	for {
		select {
		case j, ok := <-w.jobs:
			if !ok {
				return nil
			}
			w.do(ctx, j)
			if err := ctx.Err(); err != nil {
				return err
			}
			w.settle(j.part)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// do visits one manifest.
func (w *work) do(ctx context.Context, j job) {
	if w.Catalog != nil {
		if result, ok := w.known(j); ok {
			w.visitOne(j.name, result)
			return
		}
	}
	w.Finder.Visit(ctx, j.name, func(result newest.Result) {
		if ctx.Err() != nil {
			return
		}
		if w.Catalog != nil {
			w.enter(j, result)
		}
		w.visitOne(j.name, result)
	})
}

func (w *work) visitOne(name blob.Name, result newest.Result) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.visit(name, result)
}

// known returns what is known of a manifest if no copy has changed.
func (w *work) known(j job) (newest.Result, bool) {
	p, id := j.part, j.name.ID
	copies := make([]newest.Copy, len(j.at))
	for i, at := range j.at {
		c := &copies[i]
		c.Location = w.locations[i]
		if err := p.Failed[i]; err != nil {
			c.State, c.Err = newest.Unreachable, err
			continue
		}
		if !at.is {
			c.State = newest.Missing
			p.shard.Gone(id, w.keys[i])
			continue
		}
		var ok bool
		if p.Unchanged[i] {
			c.Version, ok = p.shard.UnchangedVersion(id, w.keys[i])
		} else if at.mark != "" {
			c.Version, ok = p.shard.Version(id, w.keys[i], at.mark)
		}
		if !ok {
			return newest.Result{}, false
		}
		c.State = newest.Current
	}
	return w.Finder.Known(j.name, p.shard.Blob(id), copies)
}

// enter enters what was read of a manifest into the catalog, as far as a listing
// can tell whether it has changed.
func (w *work) enter(j job, result newest.Result) {
	p := j.part
	var copies []catalog.Copy
	var asked []catalog.LocationKey
	for i, c := range result.Copies {
		at := j.at[i]
		entered := (c.State == newest.Current || c.State == newest.Stale) && (at.mark != "" || at.is && p.Unchanged[i])
		if entered {
			copies = append(copies, catalog.Copy{Location: w.keys[i], Mark: at.mark, Unchanged: p.Unchanged[i], Version: c.Version})
		}
		if c.State != newest.Unreachable {
			asked = append(asked, w.keys[i])
		}
		if entered != at.is || c.State == newest.Unreachable {
			p.partial[i].Store(true)
		}
	}
	if result.Manifest == nil || result.Large() || !p.shard.Set(j.name.ID, result.Blob, copies, asked) {
		for i := range p.partial {
			p.partial[i].Store(true)
		}
	}
}

// settle is called once for each job that is done and once when all are handed
// out. The last call saves what was found out.
func (w *work) settle(p *part) {
	if p.left.Add(-1) > 0 || p.shard == nil {
		return
	}
	var listed []catalog.Listing
	for i, key := range w.keys {
		if p.Failed[i] != nil {
			continue
		}
		l := catalog.Listing{Location: key}
		if !p.partial[i].Load() {
			l.Mark = p.Marks[i]
		}
		listed = append(listed, l)
	}
	if err := w.Catalog.Save(p.shard, listed); err != nil {
		w.unsaved.Store(err)
	}
}

// shards are the parts of the catalog that listings have asked for, some before
// their turn.
type shards struct {
	mu    sync.Mutex
	ahead map[byte]*catalog.Shard
}

// load returns a shard that is loaded once until it is taken.
func (s *shards) load(from *catalog.Catalog, first byte) *catalog.Shard {
	s.mu.Lock()
	defer s.mu.Unlock()
	loaded := s.ahead[first]
	if loaded == nil {
		if s.ahead == nil {
			s.ahead = map[byte]*catalog.Shard{}
		}
		loaded = from.Load(first)
		s.ahead[first] = loaded
	}
	return loaded
}

// take returns a shard whose turn it is.
func (s *shards) take(from *catalog.Catalog, first byte) *catalog.Shard {
	loaded := s.load(from, first)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ahead, first)
	return loaded
}
