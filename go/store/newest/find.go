package newest

import (
	"context"
	"errors"

	"golang.org/x/sync/semaphore"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/pace"
	"powercloud.unidatum.com/go/blob/quorum"
	"powercloud.unidatum.com/go/store/manifest"
)

const (
	// smallManifest is the size of the manifests that are read from all
	// locations at once and without regard to memory, in bytes: those of
	// objects of up to 25 GiB or so.
	smallManifest = 256 << 10
	// growth is by how much the limit grows when a manifest turns out larger.
	// What a location says of a size isn't relied on.
	growth = 8
	// memory is what larger manifests may take at a time, in bytes. One that
	// takes more is read while no other is.
	memory = 256 << 20
	// copies is how often a manifest may be in memory while it is read: as a
	// blob and opened, both of the newest so far and of the next location's.
	copies = 4
)

// Finder reads the manifests of one cluster at a set's locations. It may be used
// by several goroutines at once; the memory that large manifests take is bounded
// for all of them together.
type Finder struct {
	set    *quorum.Set
	sealer *manifest.Sealer
	memory *semaphore.Weighted
	// superseding has one large manifest looked at that is about to be replaced,
	// beside those that memory is for: who replaces it may hold some of that.
	superseding *semaphore.Weighted
}

// NewFinder returns a Finder of a cluster's manifests.
func NewFinder(set *quorum.Set, sealer *manifest.Sealer) *Finder {
	return &Finder{set: set, sealer: sealer, memory: semaphore.NewWeighted(memory), superseding: semaphore.NewWeighted(1)}
}

// Find reads the manifest with the given name at every location. Once ctx is
// done, locations count as unreachable.
func (f *Finder) Find(ctx context.Context, name blob.Name) Result {
	var result Result
	f.Visit(ctx, name, func(found Result) { result = found })
	return result
}

// Visit is Find for callers that look at many manifests at once: what use is
// called with counts as memory in use until it returns. It must not visit
// another manifest itself, and keep nothing of a large one.
func (f *Finder) Visit(ctx context.Context, name blob.Name, use func(Result)) {
	found := finding{sealer: f.sealer, name: name}
	var larger, late []int
	replies, opened := quorum.GetOpened(ctx, f.set, name, smallManifest, func(data []byte) (*manifest.Manifest, error) {
		return found.open(data)
	})
	for i, reply := range replies {
		found.copies = append(found.copies, Copy{Location: reply.Location})
		switch {
		case errors.Is(reply.Err, blob.ErrTooLarge):
			larger = append(larger, i)
			continue
		case errors.Is(reply.Err, pace.ErrLate):
			late = append(late, i)
		}
		found.answered(i, opened[i], reply.Data, reply.Err)
	}
	held := f.readLarger(ctx, &found, larger)
	if found.newest == nil && len(late) > 0 {
		// What was taken for a copy isn't one.
		f.memory.Release(held)
		held = f.readLarger(ctx, &found, late)
	}
	defer f.memory.Release(held)
	use(found.result())
}

// readLarger reads the copies at some locations that may be larger than a small
// manifest. It returns how much of the memory is taken for them.
func (f *Finder) readLarger(ctx context.Context, found *finding, locations []int) (held int64) {
	for limit := int64(smallManifest); len(locations) > 0; {
		if limit == manifest.MaxBlob {
			found.failed(locations, Corrupt, manifest.ErrCorrupt)
			return held
		}
		// Given back before more is asked for, or two could wait for each
		// other.
		f.memory.Release(held)
		limit = min(limit*growth, manifest.MaxBlob)
		held = min(copies*limit, memory)
		if err := f.memory.Acquire(ctx, held); err != nil {
			found.failed(locations, Unreachable, err)
			return 0
		}
		locations = found.readUpTo(ctx, locations, limit)
	}
	return held
}

// Known is the Result of a manifest of which all is known without reading it: its
// newest version as it is stored, and of each copy its version, or that it is
// missing or unreachable. It reports false when that doesn't fit together.
func (f *Finder) Known(name blob.Name, stored []byte, copies []Copy) (Result, bool) {
	found := finding{sealer: f.sealer, name: name, copies: copies, blob: stored}
	m, err := f.sealer.Open(name, stored)
	if err != nil {
		return Result{}, false
	}
	found.newest = m
	held := false
	for _, c := range copies {
		if c.State != Current {
			continue
		}
		if c.Version.Compare(m.Version) > 0 {
			return Result{}, false
		}
		held = held || c.Version == m.Version
	}
	return found.result(), held
}

// finding is a manifest that is being looked for.
type finding struct {
	sealer *manifest.Sealer
	name   blob.Name
	copies []Copy
	newest *manifest.Manifest
	blob   []byte
}

// readUpTo reads the copies at some locations, up to a limit in bytes, one after the
// other, and returns those that are larger still.
func (f *finding) readUpTo(ctx context.Context, locations []int, limit int64) []int {
	var larger []int
	var spare []byte
	for _, i := range locations {
		var opened *manifest.Manifest
		data, err := blob.GetAccepted(ctx, f.copies[i].Location, f.name, spare, limit, func(data []byte) (err error) {
			opened, err = f.open(data)
			return err
		})
		if errors.Is(err, blob.ErrTooLarge) {
			larger = append(larger, i)
			continue
		}
		spare = f.answered(i, opened, data, err)
	}
	return larger
}

// open opens a copy. It takes one of a later version of the format too, and
// returns nil for it: a location that has several versions must not offer an older
// one in its place.
func (f *finding) open(data []byte) (*manifest.Manifest, error) {
	m, err := f.sealer.Open(f.name, data)
	if errors.Is(err, manifest.ErrNewer) {
		return nil, nil
	}
	return m, err
}

// answered enters the answer of the location with index i: what open made of a
// copy and its sealed form, or an error. It returns the memory of a copy that is not needed any
// more.
func (f *finding) answered(i int, m *manifest.Manifest, data []byte, err error) []byte {
	found := &f.copies[i]
	found.Err = nil
	switch {
	case errors.Is(err, blob.ErrNotFound):
		found.State = Missing
		return nil
	case errors.Is(err, blob.ErrDamaged), errors.Is(err, manifest.ErrCorrupt):
		found.State, found.Err = Corrupt, err
		return nil
	case err != nil:
		found.State, found.Err = Unreachable, err
		return nil
	case m == nil:
		found.State, found.Err = Newer, manifest.ErrNewer
		return data
	}
	found.State, found.Version = Current, m.Version
	if f.newest != nil && m.Version.Compare(f.newest.Version) <= 0 {
		return data
	}
	spare := f.blob
	f.newest, f.blob = m, data
	return spare
}

// failed enters why nothing is known of some locations' copies.
func (f *finding) failed(locations []int, state State, err error) {
	for _, i := range locations {
		f.copies[i].State, f.copies[i].Err = state, err
	}
}

// result compares the copies with the newest.
func (f *finding) result() Result {
	for i := range f.copies {
		found := &f.copies[i]
		if found.State == Current && found.Version != f.newest.Version {
			found.State = Stale
		}
	}
	return Result{Manifest: f.newest, Blob: f.blob, Copies: f.copies}
}
