// Package statetest has a state volume for tests that need no disk: a folder that is
// locked until it gets its key.
package statetest

import (
	"context"
	"errors"
	"sync"

	"powercloud.unidatum.com/go/node/state"
	"powercloud.unidatum.com/go/node/volume/header"
)

// Volume is a place that is blank at first. Its fields are set before it is used.
type Volume struct {
	// Folder is where the state is while the volume is open.
	Folder string
	// Creating, unless nil, is called before anything is created, and fails it with an
	// error.
	Creating func(context.Context) error
	// Forged, unless nil, is whose the locked volume is as a forged copy of its header
	// says, which comes before the true one.
	Forged *header.Owner

	mu    sync.Mutex
	made  bool
	open  bool
	owner header.Owner
	key   header.Key
}

var _ state.Place = (*Volume)(nil)

// Encrypts reports that it stands for a volume that is encrypted.
func (*Volume) Encrypts() bool { return true }

// Lock does what a restart of the machine does.
func (v *Volume) Lock() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.open = false
}

// Look returns what there is.
func (v *Volume) Look() (state.Found, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case !v.made:
		return state.Found{Condition: state.Blank}, nil
	case !v.open:
		owners := []header.Owner{v.owner}
		if v.Forged != nil {
			owners = append([]header.Owner{*v.Forged}, owners...)
		}
		return state.Found{Condition: state.Locked, Owners: owners}, nil
	}
	return state.Found{Condition: state.Open, Folder: v.Folder}, nil
}

// Create makes the volume, unless populate fails.
func (v *Volume) Create(ctx context.Context, owner header.Owner, key *header.Key, populate func(folder string) error) (string, error) {
	if v.Creating != nil {
		if err := v.Creating(ctx); err != nil {
			return "", err
		}
	}
	if err := populate(v.Folder); err != nil {
		return "", err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.made {
		return "", errors.New("there is a volume already")
	}
	v.made, v.open, v.owner, v.key = true, true, owner, *key
	return v.Folder, nil
}

// Unlock opens the volume with the key that it was made with.
func (v *Volume) Unlock(key *header.Key) (string, header.Owner, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if *key != v.key {
		return "", header.Owner{}, header.ErrWrongKey
	}
	v.open = true
	return v.Folder, v.owner, nil
}

// Erase makes the volume blank. Its folder stays, as what is mounted does.
func (v *Volume) Erase() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.made, v.open = false, false
	return nil
}

// Grow does nothing.
func (*Volume) Grow(context.Context) error { return nil }

// Space returns that of a small volume.
func (*Volume) Space() (state.Space, error) { return state.Space{Encrypted: true}, nil }
