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
		errs, err = s.Set.ListEach(groupCtx, blob.KindManifest, failed, func(listed quorum.Group) error {
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

	mu    sync.Mutex
	visit func(blob.Name, newest.Result)
}

// part is the manifests whose IDs begin with one byte.
type part struct {
	shard  *catalog.Shard
	failed []error
	// left counts the jobs that are not done, and one more until all are handed
	// out.
	left atomic.Int64
}

// job is one manifest.
type job struct {
	part *part
	name blob.Name
	// marks are the version marks at the locations that list it; "" at others.
	marks []string
}

// handOut hands out what the locations list of one first byte.
func (w *work) handOut(ctx context.Context, listed quorum.Group, expect func(int64)) error {
	jobs := merge(listed.Listed)
	if len(jobs) == 0 && w.Catalog == nil {
		return nil
	}
	if expect != nil {
		expect(int64(len(jobs)))
	}
	p := &part{failed: listed.Failed}
	if w.Catalog != nil {
		p.shard = w.Catalog.Load(listed.First)
	}
	p.left.Store(int64(len(jobs)) + 1)
	for _, j := range jobs {
		j.part = p
		select {
		case w.jobs <- j:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	w.settle(p)
	return nil
}

// merge brings together what the locations list of the same name.
func merge(listed [][]blob.Info) []job {
	var jobs []job
	index := map[[32]byte]int{}
	for i, infos := range listed {
		for _, info := range infos {
			at, known := index[info.Name.ID]
			if !known {
				at = len(jobs)
				index[info.Name.ID] = at
				jobs = append(jobs, job{name: info.Name, marks: make([]string, len(listed))})
			}
			jobs[at].marks[i] = info.Mark
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
	copies := make([]newest.Copy, len(j.marks))
	for i, mark := range j.marks {
		c := &copies[i]
		c.Location = w.locations[i]
		switch err := j.part.failed[i]; {
		case err != nil:
			c.State, c.Err = newest.Unreachable, err
		case mark == "":
			c.State = newest.Missing
		default:
			version, ok := j.part.shard.Version(j.name.ID, w.keys[i], mark)
			if !ok {
				return newest.Result{}, false
			}
			c.State, c.Version = newest.Current, version
		}
	}
	return w.Finder.Known(j.name, j.part.shard.Blob(j.name.ID), copies)
}

// enter enters what was read of a manifest into the catalog, as far as a listing
// can tell whether it has changed.
func (w *work) enter(j job, result newest.Result) {
	if result.Manifest == nil || result.Large() {
		return
	}
	var copies []catalog.Copy
	var asked []catalog.LocationKey
	for i, c := range result.Copies {
		if c.State == newest.Unreachable {
			continue
		}
		asked = append(asked, w.keys[i])
		if j.marks[i] != "" && (c.State == newest.Current || c.State == newest.Stale) {
			copies = append(copies, catalog.Copy{Location: w.keys[i], Mark: j.marks[i], Version: c.Version})
		}
	}
	j.part.shard.Set(j.name.ID, result.Blob, copies, asked)
}

// settle is called once for each job that is done and once when all are handed
// out. The last call saves what was found out.
func (w *work) settle(p *part) {
	if p.left.Add(-1) > 0 || p.shard == nil {
		return
	}
	var listed []catalog.LocationKey
	for i, key := range w.keys {
		if p.failed[i] == nil {
			listed = append(listed, key)
		}
	}
	if err := w.Catalog.Save(p.shard, listed); err != nil {
		w.unsaved.Store(err)
	}
}
