// Package grace keeps garbage collection's grace record: which chunks and
// leftover files were found unreferenced, since when, and which of them are
// about to be deleted.
//
// The record is what lets writers and the collector run at the same time. A
// writer never counts on a stored copy that the record lists: it stores the
// chunk again under the next generation. And after it has written its
// manifests it looks at the record once more: a chunk of its own that was
// condemned meanwhile means that the collector may have missed the manifest.
// The collector in turn condemns before it reads the manifests for the last
// time. So one of the two always sees the other, whatever their clocks say. Where
// the record was written meanwhile, what it said in between may be forgotten
// again: then the writer looks whether its chunks are still there.
//
// Every location holds a copy; the format is written down in docs/formats.md.
package grace

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/quorum"
	"powercloud.unidatum.com/go/keys"
	"powercloud.unidatum.com/go/store/record"
)

// ErrCorrupt means that a blob isn't an authentic grace record of this
// cluster.
var ErrCorrupt = errors.New("grace record is corrupt")

// Key identifies an entry: a chunk's blob ID, or LeftoverKey of a file.
type Key = [32]byte

// Entry says how long something has been unreferenced.
type Entry struct {
	// Since is when a collection first found it unreferenced.
	Since time.Time
	// Condemned is set before a chunk is deleted, and stays for a grace
	// period after: Since is then when it was set.
	Condemned bool
}

// Record is the content of one grace record.
type Record struct {
	// Chunks holds the unreferenced chunks by blob ID.
	Chunks map[Key]Entry
	// Leftovers holds temporary files of interrupted writes, by LeftoverKey.
	Leftovers map[Key]Entry
}

// NewRecord returns an empty record.
func NewRecord() *Record {
	return &Record{Chunks: map[Key]Entry{}, Leftovers: map[Key]Entry{}}
}

// LeftoverKey returns the key of a temporary file: a hash of its location's
// index and name, its own name and its version mark.
func LeftoverKey(location string, file blob.Temporary) Key {
	h := sha256.New()
	for _, part := range []string{location, file.Name, file.Mark} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	var key Key
	h.Sum(key[:0])
	return key
}

// Keeper reads and writes the grace records of one cluster.
type Keeper struct {
	set    *quorum.Set
	sealer *record.Sealer
}

// NewKeeper returns a Keeper of the records at the set's locations.
func NewKeeper(set *quorum.Set, root *keys.Root) (*Keeper, error) {
	sealer, err := record.NewSealer(root, magic, keys.PurposeGraceRecordName)
	if err != nil {
		return nil, err
	}
	return &Keeper{set: set, sealer: sealer}, nil
}

// Listing is what the records of all locations list at one time.
type Listing struct {
	// Chunks are those that a writer must not count on: those in the record of
	// any location that answers. The value tells whether the chunk is
	// condemned. A record that fails authentication is passed over: its
	// location is not to be believed, and the others have theirs.
	Chunks map[Key]bool
	// stored has a digest of each location's record, zero where none was read.
	stored [][sha256.Size]byte
}

// Same reports whether no record was written between an earlier listing and this
// one. If one was, a chunk may have been condemned, deleted and forgotten between
// the two: that neither lists it says nothing then.
func (l *Listing) Same(earlier *Listing) bool { return slices.Equal(l.stored, earlier.stored) }

// records returns the record of every location.
func (k *Keeper) records(ctx context.Context) record.Copies[*Record] {
	return record.Read(ctx, k.set, k.sealer, maxBlob, k.open)
}

// Listed reads the records.
func (k *Keeper) Listed(ctx context.Context) (*Listing, error) {
	return k.listed(k.records(ctx)), ctx.Err()
}

// ListedAtQuorum is Listed for the last look before a write is acknowledged.
// When fewer locations answer than a write needs, it fails as the write would:
// who can't see the record can't know what a collector is deleting.
func (k *Keeper) ListedAtQuorum(ctx context.Context) (*Listing, error) {
	copies := k.records(ctx)
	if err := k.set.AnsweredAtQuorum(ctx, copies.Replies); err != nil {
		return nil, err
	}
	return k.listed(copies), nil
}

// listed merges the records that were read.
func (k *Keeper) listed(copies record.Copies[*Record]) *Listing {
	l := &Listing{Chunks: map[Key]bool{}, stored: make([][sha256.Size]byte, len(copies.Replies))}
	for i, reply := range copies.Replies {
		if reply.Err != nil {
			continue
		}
		l.stored[i] = sha256.Sum256(reply.Data)
		for key, entry := range copies.Contents[i].Chunks {
			l.Chunks[key] = l.Chunks[key] || entry.Condemned
		}
	}
	return l
}

// Agreed returns what the records of all locations agree on: the entries that
// every one of them has, each with its latest date. Only these were visible to
// every writer since. A location without a readable record leaves nothing to
// agree on; one that can't be read is an error.
func (k *Keeper) Agreed(ctx context.Context) (*Record, error) {
	var agreed *Record
	copies := k.records(ctx)
	for i, reply := range copies.Replies {
		if !blob.Answered(reply.Err) {
			return nil, fmt.Errorf("reading the grace record at %s: %w", reply.Location, reply.Err)
		}
		found := copies.Contents[i]
		if found == nil {
			found = NewRecord()
		}
		if agreed == nil {
			agreed = found
			continue
		}
		intersect(agreed.Chunks, found.Chunks)
		intersect(agreed.Leftovers, found.Leftovers)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return agreed, nil
}

// intersect drops from a what isn't in b, and keeps the later dates.
func intersect(a, b map[Key]Entry) {
	for key, entry := range a {
		other, ok := b[key]
		if !ok {
			delete(a, key)
			continue
		}
		if other.Since.After(entry.Since) {
			entry.Since = other.Since
		}
		entry.Condemned = entry.Condemned || other.Condemned
		a[key] = entry
	}
}

// Write replaces the record at every location. A location that fails makes it
// fail: a record that some writer can't see protects nothing.
func (k *Keeper) Write(ctx context.Context, record *Record, random io.Reader) error {
	sealed, err := k.seal(record, random)
	if err != nil {
		return err
	}
	for _, location := range k.set.Locations() {
		if err := k.sealer.Write(ctx, location, sealed); err != nil {
			return fmt.Errorf("writing the grace record at %s: %w", location, err)
		}
	}
	return nil
}
