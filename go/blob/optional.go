package blob

import "context"

// Closer is what a Location also implements when it goes on with something behind
// the calls that began it.
type Closer interface {
	// Close returns once nothing is under way any more, and what was done
	// outlasts a power cut. When ctx ends, what is under way is ended and
	// ctx's error returned. The location may be used afterwards.
	Close(ctx context.Context) error
}

// Completer is what a Location also implements when it keeps a blob in several
// pieces and can tell which of them are there.
type Completer interface {
	// PutMissing is Put for a blob whose name determines its content: what is
	// there of it already, by name and size, is not written again.
	PutMissing(ctx context.Context, name Name, data []byte) error
}

// PutMissing stores a blob whose name determines its content, as far as the location
// lacks it. It goes by the name and size of what is there, not by its content.
func PutMissing(ctx context.Context, location Location, name Name, data []byte) error {
	if completer, ok := location.(Completer); ok {
		return completer.PutMissing(ctx, name, data)
	}
	return PutUnlessThere(ctx, location, name, data)
}

// PutUnlessThere asks a location whether it has a blob of that name and size, and puts
// it there if not.
func PutUnlessThere(ctx context.Context, location Location, name Name, data []byte) error {
	info, err := location.Stat(ctx, name)
	if err == nil && info.Size == int64(len(data)) {
		return nil
	}
	// Whatever kept Stat from an answer, Put meets too and reports.
	return location.Put(ctx, name, data)
}

// Doubter is what a Location also implements that can read a blob of which so many pieces
// are out of reach that they may be those of a newer version.
type Doubter interface {
	// Doubt returns, in a line, why a manifest that was read may not be the newest, or
	// nothing. It says the same from then on.
	Doubt() string
}

// Healer is what a Location also implements when it keeps a blob in several pieces,
// at parts that can be lost one by one.
type Healer interface {
	// ProbeAll returns nil when every part answers.
	ProbeAll(ctx context.Context) error
	// Inspect looks at the pieces of every blob and changes nothing. An error is
	// ctx's, or says that the parts can't be compared at all; parts that can't
	// be reached are in the result.
	Inspect(ctx context.Context, options HealOptions) (Health, error)
	// Heal is Inspect, and makes again what is missing, old or altered, from the
	// other pieces of the same blob. It never makes a piece of what enough parts
	// don't agree on.
	Heal(ctx context.Context, options HealOptions) (Health, error)
	// Missed returns the parts that missed a write that succeeded, each with the
	// first reason, in the parts' order.
	Missed() Failures
}

// ProbeAll returns nil when every part of a location answers, if it has parts.
func ProbeAll(ctx context.Context, location Location) error {
	if healer, ok := location.(Healer); ok {
		return healer.ProbeAll(ctx)
	}
	return nil
}

// HealOptions say how closely a Healer looks.
type HealOptions struct {
	// Verify has every piece of every chunk read, not only listed. Those of other
	// blobs always are.
	Verify bool
	// Expect and Done are told the number of bytes of chunks that are to be
	// read, and were; they may be nil.
	Expect, Done func(n int64)
}

// Health is what a Healer found.
type Health struct {
	// Missing, Stale and Corrupt count the blobs that can be put together and have
	// a piece that is missing, of an older version, or altered; each blob once.
	Missing, Stale, Corrupt int
	// Repaired counts the blobs of these that have all their pieces again.
	Repaired int
	// Parts has what was found at each part.
	Parts []PartHealth
}

// PartHealth is the state of the pieces at one part.
type PartHealth struct {
	// Part is the part as it was given.
	Part string
	// Missing, Stale and Corrupt count its pieces that were not as they should be,
	// Repaired those that were made again.
	Missing, Stale, Corrupt, Repaired int
	// Err says why the part could not be looked at or written to, or is nil.
	Err error
}
