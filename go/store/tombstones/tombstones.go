// Package tombstones keeps the records by which the tombstones of removed objects
// are deleted: which of them every location was found to have, and since when; and
// which a collection is deleting at present.
//
// A location deletes whatever it has under a name, so a collection that is about
// to delete a tombstone must not meet an object that was put there since. So it
// first enters the tombstone into the record of removals at every location, and
// only then looks at the manifests for the last time. A writer looks at that record
// after its manifest is written. One of the two sees the other, whatever their
// clocks say: the collection spares the manifest, or the write fails.
//
// Every location holds a copy of both records; the format is written down in
// docs/formats.md.
package tombstones

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
	"powercloud.unidatum.com/go/store/manifest"
	"powercloud.unidatum.com/go/store/record"
)

// ErrCorrupt means that a blob isn't an authentic record of tombstones of this
// cluster.
var ErrCorrupt = errors.New("record of tombstones is corrupt")

// Key is a manifest's blob ID.
type Key = [blob.IDSize]byte

// Entry is a tombstone in a record.
type Entry struct {
	// Version is the tombstone's: another of the same object is another matter.
	Version manifest.Version
	// Since is when it was entered.
	Since time.Time
}

// Entries are tombstones by the IDs of their manifests.
type Entries = map[Key]Entry

// Keeper reads and writes the records of one cluster.
type Keeper struct {
	set      *quorum.Set
	seen     *record.Sealer
	removals *record.Sealer
}

// NewKeeper returns a Keeper of the records at the set's locations.
func NewKeeper(set *quorum.Set, root *keys.Root) (*Keeper, error) {
	seen, err := record.NewSealer(root, magicSeen, keys.PurposeTombstoneRecordName)
	if err != nil {
		return nil, err
	}
	removals, err := record.NewSealer(root, magicRemovals, keys.PurposeRemovalRecordName)
	if err != nil {
		return nil, err
	}
	return &Keeper{set: set, seen: seen, removals: removals}, nil
}

// Seen returns the tombstones that were found at every location, as far as the
// records of all locations agree: each with its latest date. A location without a
// readable record leaves nothing to agree on; one that can't be read is an error.
func (k *Keeper) Seen(ctx context.Context) (Entries, error) {
	copies := k.copies(ctx, k.seen, MaxSeen)
	if err := unread(ctx, copies.Replies); err != nil {
		return nil, err
	}
	return agreed(copies.Contents), nil
}

// WriteSeen replaces the record of the tombstones that were found at every location.
// Of more than MaxSeen, those that were entered last are left out.
func (k *Keeper) WriteSeen(ctx context.Context, entries Entries, random io.Reader) error {
	return k.write(ctx, k.seen, entries, MaxSeen, random)
}

// WriteRemovals replaces the record of removals, which holds MaxRemovals. It is
// written even when it is empty, for Removals.Same to tell.
func (k *Keeper) WriteRemovals(ctx context.Context, entries Entries, random io.Reader) error {
	if len(entries) > MaxRemovals {
		return fmt.Errorf("%d tombstones are more than the %d that can be deleted at a time", len(entries), MaxRemovals)
	}
	return k.write(ctx, k.removals, entries, MaxRemovals, random)
}

// write replaces a record at every location, durably. A location that fails makes
// it fail.
func (k *Keeper) write(ctx context.Context, sealer *record.Sealer, entries Entries, most int, random io.Reader) error {
	sealed, err := sealer.Seal(appendEntries(nil, entries, most), random)
	if err != nil {
		return err
	}
	for _, location := range k.set.Locations() {
		if err := sealer.Write(ctx, location, sealed); err != nil {
			return fmt.Errorf("%s is unreachable: writing a record of tombstones: %w", location, err)
		}
	}
	return nil
}

// Removals is what the records of removals at all locations say at one time.
type Removals struct {
	// Listed are those in the record of any location that answers, each with its
	// latest date. A record that fails authentication is passed over.
	Listed Entries
	// Agreed are those in the records of all locations that answer.
	Agreed Entries
	// stored has a digest of each location's record, zero where none was read.
	stored [][sha256.Size]byte
}

// Same reports whether no record was written between an earlier reading and this
// one. If one was, a manifest may have been deleted between the two.
func (r *Removals) Same(earlier *Removals) bool { return slices.Equal(r.stored, earlier.stored) }

// Removals reads the records of removals, where they can be read.
func (k *Keeper) Removals(ctx context.Context) (*Removals, error) {
	return merge(k.copies(ctx, k.removals, MaxRemovals)), ctx.Err()
}

// AllRemovals is Removals that fails when a location can't be read.
func (k *Keeper) AllRemovals(ctx context.Context) (*Removals, error) {
	copies := k.copies(ctx, k.removals, MaxRemovals)
	if err := unread(ctx, copies.Replies); err != nil {
		return nil, err
	}
	return merge(copies), nil
}

// RemovalsAtQuorum is Removals for the last look before a write is acknowledged.
// When fewer locations answer than a write needs, it fails as the write would.
func (k *Keeper) RemovalsAtQuorum(ctx context.Context) (*Removals, error) {
	copies := k.copies(ctx, k.removals, MaxRemovals)
	if err := k.set.AnsweredAtQuorum(ctx, copies.Replies); err != nil {
		return nil, err
	}
	return merge(copies), nil
}

// copies returns the record of every location.
func (k *Keeper) copies(ctx context.Context, sealer *record.Sealer, most int) record.Copies[Entries] {
	return record.Read(ctx, k.set, sealer, maxBlob(most), func(data []byte) (Entries, error) {
		return open(sealer, most, data)
	})
}

// merge brings the records of removals together.
func merge(copies record.Copies[Entries]) *Removals {
	r := &Removals{Listed: Entries{}, stored: make([][sha256.Size]byte, len(copies.Replies))}
	var answered []Entries
	for i, reply := range copies.Replies {
		if !blob.Answered(reply.Err) {
			continue
		}
		if reply.Err == nil {
			r.stored[i] = sha256.Sum256(reply.Data)
		}
		entries := copies.Contents[i]
		answered = append(answered, entries)
		for key, entry := range entries {
			if listed, known := r.Listed[key]; !known || entry.Since.After(listed.Since) {
				r.Listed[key] = entry
			}
		}
	}
	r.Agreed = agreed(answered)
	return r
}

// unread returns why the records could not be read everywhere, or nil.
func unread(ctx context.Context, replies []quorum.Reply) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, reply := range replies {
		if !blob.Answered(reply.Err) {
			return fmt.Errorf("%s is unreachable: reading a record of tombstones: %w", reply.Location, reply.Err)
		}
	}
	return nil
}

// open authenticates a record's blob and parses it.
func open(sealer *record.Sealer, most int, data []byte) (Entries, error) {
	content, err := sealer.Open(data)
	if err != nil {
		return nil, ErrCorrupt
	}
	return parse(content, most)
}

// agreed returns the entries that all records have, each with its latest date.
func agreed(records []Entries) Entries {
	common := Entries{}
	if len(records) == 0 {
		return common
	}
	for key, entry := range records[0] {
		everywhere := true
		for _, other := range records[1:] {
			same, known := other[key]
			if everywhere = known && same.Version == entry.Version; !everywhere {
				break
			}
			if same.Since.After(entry.Since) {
				entry.Since = same.Since
			}
		}
		if everywhere {
			common[key] = entry
		}
	}
	return common
}
