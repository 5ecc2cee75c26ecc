package repository

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"powercloud.unidatum.com/go/blob"
)

// ErrForeign means that a location holds another cluster's key header.
var ErrForeign = errors.New("holds a different cluster's key header; remove it from --repo")

// refused is a location whose key header isn't this cluster's, or could not be
// read, so that it may be another's. Nothing is read from it and nothing written
// to it.
type refused struct {
	location blob.Location
	why      error
}

func (r refused) String() string { return r.location.String() }

func (r refused) Probe(context.Context) error { return r.why }

func (r refused) Put(context.Context, blob.Name, []byte) error {
	if errors.Is(r.why, ErrForeign) {
		return r.why
	}
	return fmt.Errorf("its key header can't be read: %w", r.why)
}

func (r refused) Get(context.Context, blob.Name, []byte, int64) ([]byte, error) {
	return nil, r.why
}

func (r refused) Stat(context.Context, blob.Name) (blob.Info, error) {
	return blob.Info{}, r.why
}

func (r refused) Delete(context.Context, blob.Name) error { return r.why }

func (r refused) List(context.Context, blob.Kind, func(blob.Info) error) error { return r.why }

func (r refused) Flush(context.Context) error { return r.why }

// sortByCopies sorts locations by how many have the same header, most first.
func sortByCopies(locations []*Location, copies map[string]int) {
	slices.SortStableFunc(locations, func(a, b *Location) int {
		return cmp.Compare(copies[string(b.raw)], copies[string(a.raw)])
	})
}

// newerFormat reports whether a blob is an undamaged key header of a later
// format version than this program reads.
func newerFormat(raw []byte) bool {
	const magic, version = "PCheader", 1
	start, body := len(magic)+2, len(raw)-sha256.Size
	if body < start || string(raw[:len(magic)]) != magic || binary.BigEndian.Uint16(raw[len(magic):]) <= version {
		return false
	}
	return sha256.Sum256(raw[:body]) == [sha256.Size]byte(raw[body:])
}
