// Package quorum keeps blobs at several locations at once: a write succeeds when
// enough of them took it, a read tries them until one serves an authentic copy.
package quorum

import (
	"context"
	"errors"

	"powercloud.unidatum.com/go/blob"
)

var errUnimplemented = errors.New("not yet")

// Set is several locations that hold the same blobs.
type Set struct {
	locations []blob.Location
	quorum    int
}

// New returns the set of these locations. A quorum of 0 means a majority.
func New(locations []blob.Location, quorum int) (*Set, error) { return nil, errUnimplemented }

// Locations returns the set's locations in the order given to New.
func (s *Set) Locations() []blob.Location { return s.locations }

// Quorum returns how many locations must accept a write.
func (s *Set) Quorum() int { return s.quorum }

// Put writes the blob to every location at once.
func (s *Set) Put(ctx context.Context, name blob.Name, data []byte) error { return errUnimplemented }

// PutMissing writes the blob to the locations that have none of that name and size.
func (s *Set) PutMissing(ctx context.Context, name blob.Name, data []byte) error {
	return errUnimplemented
}

// Get reads the blob from the first location whose copy passes verify.
func (s *Set) Get(ctx context.Context, name blob.Name, buf []byte, limit int64, verify func([]byte) error) ([]byte, error) {
	return nil, errUnimplemented
}

// Reply is one location's answer to GetEach.
type Reply struct {
	Location blob.Location
	Data     []byte
	Err      error
}

// GetEach reads the blob from every location at once.
func (s *Set) GetEach(ctx context.Context, name blob.Name, limit int64) []Reply { return nil }

// Flush makes every location durable.
func (s *Set) Flush(ctx context.Context) error { return errUnimplemented }
