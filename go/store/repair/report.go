package repair

import (
	"errors"
	"fmt"

	"powercloud.unidatum.com/go/blob"
)

// Report is what a check or a repair found and did.
type Report struct {
	// Objects and Deleted count the objects and the tombstones.
	Objects, Deleted int
	// InUse counts the chunks that objects need, Unreferenced the others.
	InUse, Unreferenced int
	// Locations has a row for each location, in the order given.
	Locations []LocationReport
	// Damaged names the objects, or manifests whose object's name can't be
	// read, that have data missing from every reachable location.
	Damaged []string
	// Replaceable says that putting a damaged object again replaces what is
	// corrupt of it.
	Replaceable bool
	// Foreign names the locations that hold another key header: another
	// cluster's, or one that conflicts with the cluster's.
	Foreign []string
	// Conflict says which locations hold key headers that conflict, and what
	// to do, or is nil.
	Conflict error
	// Rollback says that all locations show older versions of objects than the
	// nodes have recorded, or none; it is nil otherwise. They are left as they are.
	Rollback error
	// Doubt says, in a line, why newer versions may exist than those that
	// were compared, or nothing: too few locations could be read.
	Doubt string
}

// LocationReport is the row of one location.
type LocationReport struct {
	// Location is the location as it was given.
	Location string
	// Blobs counts the header, manifests and chunks in use that it held.
	Blobs int
	// Missing, Stale and Corrupt count what was wrong.
	Missing, Stale, Corrupt int
	// Repaired counts what was written or removed.
	Repaired int
	// Newer counts the manifests that a newer pcctl wrote, which are left alone.
	Newer int
	// Removed counts the manifests that were removed: they could not be read,
	// and no majority of the locations can have taken them.
	Removed int
	// Foreign says that it holds another cluster's key header.
	Foreign bool
	// Conflicting says that it holds another key header of the cluster, as
	// new as that of other locations.
	Conflicting bool
	// Err says why it could not be checked or repaired, or is nil.
	Err error
	// Parts has what was found at each part of an erasure-coded set.
	Parts []blob.PartHealth
	// PartErr says which part of the set could not be checked or repaired, and
	// why, or is nil. The others serve what is stored there all the same.
	PartErr error
}

// differences counts what is still wrong with a location.
func (l LocationReport) differences() int {
	return l.Missing + l.Stale + l.Corrupt - l.Repaired
}

// Status describes a location in a word or two, or says why it could not be
// reached.
func (l LocationReport) Status() string {
	switch {
	case l.Foreign:
		return "different cluster header"
	case l.Err != nil:
		return fmt.Sprintf("unreachable: %v", l.Err)
	case l.PartErr != nil:
		return fmt.Sprintf("part unreachable: %v", l.PartErr)
	case l.differences() > 0:
		return "needs repair"
	case l.Newer > 0:
		return "manifests of a newer pcctl"
	case l.Conflicting:
		return "different cluster header"
	case l.Repaired > 0:
		return "repaired"
	}
	return "ok"
}

// ErrDiffer means that locations lack something that others have.
var ErrDiffer = errors.New("locations differ; run 'pcctl repair'")

// Err returns nil when every location was reached and all hold everything.
func (r *Report) Err() error {
	if r.Rollback != nil {
		return r.Rollback
	}
	if n := len(r.Damaged); n > 0 {
		otherwise := "run 'pcctl repair --verify' and put it again"
		if r.Replaceable {
			otherwise = "put it again"
		}
		return fmt.Errorf("%d damaged: data is missing from every reachable location; "+
			"bring back a location that has it, or %s", n, otherwise)
	}
	if r.Conflict != nil {
		return r.Conflict
	}
	for _, l := range r.Locations {
		// That one can mend what this one can't read, too.
		if l.Newer > 0 {
			return fmt.Errorf("%s has %d manifests that were written by a newer pcctl; use that one", l.Location, l.Newer)
		}
	}
	for _, l := range r.Locations {
		// Running repair again doesn't help a location that just refused it.
		if !l.Foreign && l.Err == nil && l.PartErr == nil && l.differences() > 0 {
			return ErrDiffer
		}
	}
	for _, l := range r.Locations {
		if l.Foreign || l.Err != nil || l.PartErr != nil {
			return fmt.Errorf("%s: %s", l.Location, l.Status())
		}
	}
	return nil
}
