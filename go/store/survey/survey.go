// Package survey takes stock of a repository: which versions of the manifests
// each location holds, which chunks the newest ones need, and which of those
// each location has.
package survey

import (
	"context"
	"errors"
	"fmt"
	"math/bits"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/quorum"
	"powercloud.unidatum.com/go/keys"
	"powercloud.unidatum.com/go/store/catalog"
	"powercloud.unidatum.com/go/store/chunk"
	"powercloud.unidatum.com/go/store/manifest"
	"powercloud.unidatum.com/go/store/newest"
	"powercloud.unidatum.com/go/store/rollback"
	"powercloud.unidatum.com/go/store/tombstones"
)

// MaxLocations is the largest number of locations that can be surveyed.
const MaxLocations = 64

// Key is a chunk's or a manifest's blob ID.
type Key = [32]byte

// Locations is a set of locations, a bit for each by its index.
type Locations uint64

// Has reports whether the location with the given index is in the set.
func (l Locations) Has(index int) bool { return l&(1<<index) != 0 }

// With returns the set with the location added.
func (l Locations) With(index int) Locations { return l | 1<<index }

// Without returns the set with the location removed.
func (l Locations) Without(index int) Locations { return l &^ (1 << index) }

// Count returns the number of locations in the set.
func (l Locations) Count() int { return bits.OnesCount64(uint64(l)) }

// Counts are the copies of manifests that one location holds. Newer are those of
// a later version of the format; see manifest.ErrNewer.
type Counts struct {
	Present, Missing, Stale, Corrupt, Newer int
}

// Survey is what was found.
type Survey struct {
	// Objects and Deleted count the newest manifests.
	Objects, Deleted int
	// Manifests has the counts of each location.
	Manifests []Counts
	// Differing are the manifests of which some location lacks the newest
	// version.
	Differing []blob.Name
	// Unreadable are the manifests of which no location has an authentic
	// copy, but for the invented ones and the newer ones.
	Unreadable []blob.Name
	// Newer are the manifests of which no location has an authentic copy that
	// this program can read, but some has one of a later version of the format.
	Newer []blob.Name
	// Invented are the manifests that no writer can have been told are
	// stored: the few locations that have one have a corrupt one.
	Invented []blob.Name
	// Unsettled are the manifests of which the newest version is at so few locations
	// that it may not have been acknowledged, while others have an older one.
	Unsettled []blob.Name
	// InUse holds the chunks that newest manifests need.
	InUse Chunks
	// Unreferenced holds the other chunks, and who has them.
	Unreferenced Loose
	// Failed says of each location why it could not be surveyed, or nil.
	Failed []error
}

// Surveyor takes surveys of one cluster.
type Surveyor struct {
	Set       *quorum.Set
	Chunks    *chunk.Sealer
	Manifests *manifest.Sealer
	Finder    *newest.Finder
	// Removals keeps the record of the tombstones that are being deleted.
	Removals *tombstones.Keeper
	// Catalog is what is known of manifests already, or nil: then all are read.
	Catalog *catalog.Catalog
	// Marks are what the nodes have recorded of manifests' versions, read before
	// the survey, or nil.
	Marks *rollback.Table
	// Members are the locations that have the cluster's key header, and so had
	// been brought up to date once. That others lack a manifest says nothing.
	Members Locations
	// Lost are the manifests that are known to have been lost, and so weren't
	// invented.
	Lost map[Key]bool
	// Expect and Done are told the number of manifests that are to be read
	// and that were read.
	Expect, Done func(n int64)
}

// New returns a Surveyor of the cluster with the given root key at a set's
// locations.
func New(set *quorum.Set, root *keys.Root) (*Surveyor, error) {
	chunks, err := chunk.NewSealer(root)
	if err != nil {
		return nil, err
	}
	manifests, err := manifest.NewSealer(root)
	if err != nil {
		return nil, err
	}
	finder := newest.NewFinder(set, manifests)
	removals, err := tombstones.NewKeeper(set, root)
	if err != nil {
		return nil, err
	}
	return &Surveyor{Set: set, Chunks: chunks, Manifests: manifests, Finder: finder, Removals: removals}, nil
}

// Take lists every location and reads every manifest. The manifests are read
// first: a write in progress stores its chunks before its manifest, so it can
// leave chunks that look unreferenced but never a chunk that looks missing.
// It fails only when the context ends or there are too many locations.
func (v *Surveyor) Take(ctx context.Context) (*Survey, error) {
	locations := v.Set.Locations()
	if len(locations) > MaxLocations {
		return nil, fmt.Errorf("%d locations are more than the %d that can be compared", len(locations), MaxLocations)
	}
	s := &Survey{
		Manifests: make([]Counts, len(locations)),
		Failed:    make([]error, len(locations)),
	}
	v.Marks.Forget()
	var lacking []blob.Name
	err := v.eachManifest(ctx, s.Failed, func(name blob.Name, result newest.Result) {
		if lackingTombstone(result) {
			lacking = append(lacking, name)
			return
		}
		v.count(s, name, result, false)
	})
	if err != nil {
		return nil, err
	}
	if err := v.countTombstones(ctx, s, lacking); err != nil {
		return nil, err
	}
	v.countHidden(s)
	s.InUse.sort()
	return s, v.listChunks(ctx, s)
}

// count enters what was found of one manifest. One that is leaving is a tombstone
// that is being deleted: that locations lack it is no difference between them.
func (v *Surveyor) count(s *Survey, name blob.Name, result newest.Result, leaving bool) {
	if errors.Is(result.Err(), newest.ErrNotFound) {
		return // Listed by a location that doesn't have it.
	}
	differs, stale, invented := false, false, v.Invented(name, result)
	compared := result.Manifest
	if result.Newer() {
		compared = nil // The version that is recorded may be there.
	}
	rolledBack := v.Marks.Compare(name.ID, compared) != nil
	for i, c := range result.Copies {
		counts := &s.Manifests[i]
		switch c.State {
		case newest.Current:
			counts.Present++
			if rolledBack {
				counts.Stale++
			}
		case newest.Missing:
			if !invented && !leaving {
				counts.Missing++
				differs = true
			}
		case newest.Stale:
			counts.Present++
			counts.Stale++
			differs, stale = true, true
		case newest.Corrupt:
			counts.Present++
			counts.Corrupt++
			differs = true
		case newest.Newer:
			counts.Present++
			counts.Newer++
		case newest.Unreachable:
			if s.Failed[i] == nil {
				s.Failed[i] = c.Err
			}
		}
	}
	if result.Manifest != nil && result.Current() < max(v.Set.Quorum(), len(result.Copies)/2+1) && stale {
		s.Unsettled = append(s.Unsettled, name)
	}
	switch {
	case invented:
		s.Invented = append(s.Invented, name)
		return
	case result.Manifest == nil && result.Newer():
		s.Newer = append(s.Newer, name)
		return
	case result.Manifest == nil:
		s.Unreadable = append(s.Unreadable, name)
		return
	}
	// Old versions aren't spread.
	if differs && !rolledBack {
		s.Differing = append(s.Differing, name)
	}
	if result.Manifest.Deleted {
		s.Deleted++
		return
	}
	s.Objects++
	for i, ref := range result.Manifest.Chunks {
		key := v.Chunks.Name(ref).ID
		s.InUse.add(Chunk{key: key, Ref: ref, size: uint32(result.Manifest.ChunkSize(i) + chunk.Overhead)})
	}
}

// countHidden enters the manifests that are recorded and that no location has. One
// that can't be reached may have them.
func (v *Surveyor) countHidden(s *Survey) {
	for _, err := range s.Failed {
		if err != nil {
			return
		}
	}
	v.Marks.Hidden(func(Key) {
		for i := range s.Manifests {
			s.Manifests[i].Missing++
		}
	})
}

// Invented reports whether a manifest was never acknowledged to a writer, though
// some location has a blob of its name that fails authentication: every location
// answered, and of the members so many don't have it that the others are fewer
// than a quorum. A majority is the largest quorum that is relied on, as an
// earlier command may have had another. One of a later version of the format may be
// that of a write under way.
func (v *Surveyor) Invented(name blob.Name, result newest.Result) bool {
	if result.Manifest != nil || result.Newer() || v.Lost[name.ID] || v.Marks.Recorded(name.ID) {
		return false
	}
	absent := 0
	for i, c := range result.Copies {
		switch {
		case c.State == newest.Unreachable:
			return false
		case c.State == newest.Missing && v.Members.Has(i):
			absent++
		}
	}
	n := len(result.Copies)
	return absent > n-v.Set.Acknowledged() && absent < n
}

func (v *Surveyor) expect(n int64) {
	if v.Expect != nil {
		v.Expect(n)
	}
}

func (v *Surveyor) done(n int64) {
	if v.Done != nil {
		v.Done(n)
	}
}
