// Package lost keeps the record of what is lost: the chunks and manifests of which
// repair found corrupt copies and no good one.
//
// A writer leaves a location alone that has a chunk of the right name and size,
// as it would send the same bytes. For a lost chunk that is wrong, so a writer
// sends the chunks that the record lists whatever the locations seem to have.
// The bytes of a chunk follow from its name: writing one can only mend, and
// mends every object that needs it. So the record is no more than a hint. An
// entry too many costs a transfer, and one that is missing leaves things as
// they were. Garbage collection doesn't look at it.
//
// A manifest that is lost was some object's, as far as could be told. That it is
// recorded keeps repair from taking it for one that a location made up, once
// locations have been added that never had it.
//
// The format is written down in docs/formats.md.
package lost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/quorum"
	"powercloud.unidatum.com/go/keys"
	"powercloud.unidatum.com/go/store/record"
)

// ErrCorrupt means that a blob isn't an authentic record of lost blobs of this
// cluster.
var ErrCorrupt = errors.New("record of lost blobs is corrupt")

// Key is the ID of a chunk or a manifest. No two of them have the same.
type Key = [blob.IDSize]byte

// Blobs is a set of chunks and manifests.
type Blobs = map[Key]bool

// Keeper reads and writes the records of one cluster.
type Keeper struct {
	set    *quorum.Set
	sealer *record.Sealer
}

// NewKeeper returns a Keeper of the records at the set's locations.
func NewKeeper(set *quorum.Set, root *keys.Root) (*Keeper, error) {
	sealer, err := record.NewSealer(root, magic, keys.PurposeLostRecordName)
	if err != nil {
		return nil, err
	}
	return &Keeper{set: set, sealer: sealer}, nil
}

// Listed returns the blobs in the record of any location that answers. A record
// that fails authentication is passed over.
func (k *Keeper) Listed(ctx context.Context) (Blobs, error) {
	listed := Blobs{}
	for _, blobs := range record.Read(ctx, k.set, k.sealer, maxBlob, k.open).Contents {
		maps.Copy(listed, blobs)
	}
	return listed, ctx.Err()
}

// Write makes blobs the content of the record at one location, where it outlasts
// a power cut once Write has returned nil. No blobs leave no record there.
func (k *Keeper) Write(ctx context.Context, location blob.Location, blobs Blobs, random io.Reader) error {
	stored, err := location.Get(ctx, k.sealer.Name(), nil, maxBlob)
	switch absent := errors.Is(err, blob.ErrNotFound); {
	case absent && len(blobs) == 0:
		return nil
	case !blob.Answered(err):
		return fmt.Errorf("reading the record of lost blobs: %w", err)
	case err == nil:
		if found, err := k.open(stored); err == nil && len(blobs) > 0 && maps.Equal(found, blobs) {
			return nil
		}
	}
	if err := k.replace(ctx, location, blobs, random); err != nil {
		return fmt.Errorf("writing the record of lost blobs: %w", err)
	}
	return nil
}

// replace writes or removes the record at a location.
func (k *Keeper) replace(ctx context.Context, location blob.Location, blobs Blobs, random io.Reader) error {
	if len(blobs) == 0 {
		if err := location.Delete(ctx, k.sealer.Name()); err != nil {
			return err
		}
		return location.Flush(ctx)
	}
	sealed, err := k.sealer.Seal(appendIDs(nil, blobs), random)
	if err != nil {
		return err
	}
	return k.sealer.Write(ctx, location, sealed)
}
