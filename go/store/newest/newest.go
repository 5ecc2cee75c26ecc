// Package newest finds the newest authentic version of an object among the
// copies of its manifest that the locations hold.
package newest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/quorum"
	"powercloud.unidatum.com/go/store/manifest"
)

// ErrNotFound means that every location answered and none has the object.
var ErrNotFound = errors.New("no such object")

// State says what a location holds of an object, compared with the newest
// authentic version.
type State int

const (
	// Current is the newest version.
	Current State = iota
	// Missing is no copy at all.
	Missing
	// Stale is an authentic copy of an older version.
	Stale
	// Corrupt is a copy that fails authentication.
	Corrupt
	// Newer is a copy that claims to be of a version of the format that this
	// program can't read: of which version of the object isn't known.
	Newer
	// Unreachable is a location that could not tell.
	Unreachable
)

// Copy is what one location holds.
type Copy struct {
	Location blob.Location
	State    State
	// Err says why, for Unreachable, Newer and Corrupt.
	Err error
	// Version is the copy's version, for Current and Stale.
	Version manifest.Version
}

// Behind reports whether the location answered that it lacks the newest version.
func (c Copy) Behind() bool {
	return c.State == Missing || c.State == Stale || c.State == Corrupt
}

// Result is what was found of one object.
type Result struct {
	// Manifest is the newest authentic version, or nil when there is none.
	Manifest *manifest.Manifest
	// Blob is its sealed form.
	Blob []byte
	// Copies has an entry for each location, in the set's order.
	Copies []Copy
}

// Err returns nil when a version was found; ErrNotFound when every location
// answered that it has none; and otherwise an error that names the locations
// that might have it: unreachable is not the same as not found.
func (r Result) Err() error {
	if r.Manifest != nil {
		return nil
	}
	var why []string
	for _, u := range r.Unread() {
		why = append(why, fmt.Sprintf("%s: %v", u.Location, u.Err))
	}
	if len(why) == 0 {
		return ErrNotFound
	}
	return fmt.Errorf("no reachable location has an authentic copy, but one may exist (%s)", strings.Join(why, "; "))
}

// Live reports whether the newest version is an object, not a tombstone.
func (r Result) Live() bool {
	return r.Manifest != nil && !r.Manifest.Deleted
}

// Newer reports whether some location has a copy that this program can't read,
// of a later version of the format. It may be newer than Manifest.
func (r Result) Newer() bool {
	return slices.ContainsFunc(r.Copies, func(c Copy) bool { return c.State == Newer })
}

// Unread returns the locations that didn't tell which version they have: those
// that could not be reached, and those whose copy can't be read.
func (r Result) Unread() []quorum.Failure {
	var unread []quorum.Failure
	for _, c := range r.Copies {
		if c.State == Unreachable || c.State == Newer || c.State == Corrupt {
			unread = append(unread, quorum.Failure{Location: c.Location, Err: c.Err})
		}
	}
	return unread
}

// Large reports whether the newest version's manifest is so large that few like
// it should be in memory at a time.
func (r Result) Large() bool { return len(r.Blob) > smallManifest }

// Current counts the locations that have the newest version.
func (r Result) Current() int {
	current := 0
	for _, c := range r.Copies {
		if c.State == Current {
			current++
		}
	}
	return current
}

// Behind counts the locations that answered without the newest version.
func (r Result) Behind() int {
	behind := 0
	for _, c := range r.Copies {
		if c.Behind() {
			behind++
		}
	}
	return behind
}
