// Package state is where a node keeps what must outlast a restart: on an encrypted
// volume of its own disk, or, on a machine without one, in a folder.
package state

import (
	"context"

	"powercloud.unidatum.com/go/node/volume"
	"powercloud.unidatum.com/go/node/volume/header"
)

// Condition is what a place is found in.
type Condition uint8

// The conditions.
const (
	// Blank is that of a place that has nothing yet.
	Blank Condition = iota + 1
	// Locked is that of an encrypted volume whose key isn't known.
	Locked
	// Open is that of a place that can be read.
	Open
)

// Found is what there is at a place.
type Found struct {
	Condition Condition
	// Owners are whose the volume is that is locked, by each of its header's copies that
	// isn't damaged. Nothing of that is authentic.
	Owners []header.Owner
	// Folder is where the state is that is open.
	Folder string
}

// Space is how much room there is.
type Space struct {
	// Encrypted reports whether the state is on an encrypted volume. The others are zero
	// if it isn't.
	Encrypted bool
	volume.Space
	// Filled is how much of the volume can be read.
	Filled int64
}

// Place is where a node keeps its state. Its methods are called one at a time, but
// Space, which may be called at any time, and Erase, which may be called while Grow runs.
type Place interface {
	// Encrypts reports whether what is kept there is encrypted.
	Encrypts() bool
	// Look returns what there is.
	Look() (Found, error)
	// Create makes a blank place into one that is open and has what populate puts into
	// its folder, or leaves it blank. key is what unlocks it from then on.
	Create(ctx context.Context, owner header.Owner, key *header.Key, populate func(folder string) error) (folder string, err error)
	// Unlock opens a place that is locked. A wrong key gives header.ErrWrongKey. The owner
	// is authentic.
	Unlock(key *header.Key) (folder string, owner header.Owner, err error)
	// Erase makes a place blank for ever: nobody can open again what was there.
	Erase() error
	// Grow makes room, as far as there is some, until ctx is done or all is done.
	Grow(ctx context.Context) error
	// Space returns how much room there is; the zero value while the place isn't open.
	Space() (Space, error)
}

// Provisional is a Place that is used for lack of a better one.
type Provisional interface {
	Place
	// Superseded returns nil once there is a better place, or ctx's error.
	Superseded(ctx context.Context) error
}
