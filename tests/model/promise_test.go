package model

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/store/manifest"
)

// model knows every version of every object that a location was ever sent, and what
// was promised of which. The rule is one: a version that a command acknowledged
// with a quorum of q is at q locations, so as long as fewer than q of them have
// lost it, lie, or can't be reached, a reader finds that version or a newer one.
//
// An erasure-coded set acknowledges what K+1 of its parts have, so it has lost a
// version once more than one of them has, lies, or can't be reached.
type model struct {
	world    *world
	objects  []*object
	commands []*command
	// bytes are the chunks that were ever sent.
	bytes map[blob.Name][]byte
	// known has the versions that manifests' blobs are.
	known map[string]*version
	// gone says when gc last deleted a chunk at each place.
	gone map[blob.Name]map[int]int
	// failure is the first broken promise.
	failure error
}

// object is all that is known of one.
type object struct {
	name     string
	blob     blob.Name
	versions []*version
	setbacks []setback
	buried   []burial
}

// version is a version of an object that some location was sent.
type version struct {
	label    string
	number   manifest.Version
	deleted  bool
	content  int
	chunks   []blob.Name
	sender   *command
	promises []promise
	// born is when a place was first sent it.
	born int
	// stored are promises that hold for its chunks only, not for its manifest.
	stored []promise
}

func (v *version) String() string {
	if v == nil {
		return "nothing"
	}
	if v.deleted {
		return v.label + " (removed)"
	}
	return fmt.Sprintf("%s (content %d)", v.label, v.content)
}

func (v *version) newer(than *version) bool {
	return than == nil || v != nil && v.number.Compare(than.number) > 0
}

// promise says that something is at so many locations but for those that have lost
// something since a moment, or lied to the command that made the promise.
type promise struct {
	quorum, from, at int
	maker            *command
	// spare says of each location how many parts more have it than it takes to read
	// it, if that isn't as many as after any write.
	spare []int
}

// setback is that a place had a version replaced by an older one, since it lied about what
// it had, or deleted. A part of an erasure-coded set can have an older one put in front of
// a version that too few parts have as yet, or have one dropped.
type setback struct {
	place, at int
	to        manifest.Version
	dropped   *version
	// buried is a tombstone that was deleted, and with it what is older.
	buried *version
}

// undoes reports whether a place that held a version may not any more.
func (s setback) undoes(v *version) bool {
	switch {
	case s.buried != nil:
		return !v.newer(s.buried)
	case s.dropped != nil:
		return v == s.dropped
	}
	return s.to.Compare(v.number) < 0
}

func newModel(w *world) *model {
	m := &model{world: w, bytes: map[blob.Name][]byte{}, known: map[string]*version{}, gone: map[blob.Name]map[int]int{}}
	for _, name := range objectNames {
		m.objects = append(m.objects, &object{name: name, blob: w.fixture.manifests.BlobName(name)})
	}
	return m
}

// fail notes a broken promise.
func (m *model) fail(format string, args ...any) {
	if m.failure == nil {
		m.failure = fmt.Errorf(format, args...)
	}
}

// broken returns the places that have lost what a promise was about, as far as
// they lose everything at once.
func (m *model) broken(p promise) places {
	var lost places
	if p.maker != nil {
		lost = p.maker.lied
	}
	for i, place := range m.world.places {
		if place.harmed >= p.from {
			lost = lost.with(i)
		}
	}
	return lost
}

// without returns the locations that can't keep a promise once so many places are
// lost.
func (m *model) without(p promise, lost places) places {
	var found places
	for i, l := range m.world.members {
		spare := l.need - l.data
		if p.spare != nil {
			spare = p.spare[i]
		}
		if l.losses(lost) > spare {
			found = found.with(i)
		}
	}
	return found
}

// holds reports whether a promise of a version's manifest is still good for who
// can't read some places.
func (m *model) holds(o *object, v *version, p promise, unread places) bool {
	if o.find(func(w *version) bool { return w.born > p.at && w.newer(v) }) != nil {
		p.spare = nil // Of the newer one there may be fewer.
	}
	return m.without(p, m.broken(p)|unread|o.undone(v, p.from)).count() < p.quorum
}

// undone returns the places that have had a version replaced since a moment.
func (o *object) undone(v *version, since int) places {
	var found places
	for _, s := range o.setbacks {
		if s.at >= since && s.undoes(v) {
			found = found.with(s.place)
		}
	}
	return found
}

// floor returns the newest version that somebody who can't read some places must
// find, or a newer one: of those acknowledged before a moment.
func (m *model) floor(o *object, before int, unread places) *version {
	var floor *version
	for _, v := range o.versions {
		good := slices.ContainsFunc(v.promises, func(p promise) bool { return p.at < before && m.holds(o, v, p, unread) })
		if good && v.newer(floor) {
			floor = v
		}
	}
	return floor
}

// readable reports whether all chunks of a version must be readable for who can't
// read some places.
func (m *model) readable(v *version, unread places) bool {
	for _, p := range slices.Concat(v.promises, v.stored) {
		lost := m.broken(p) | unread | m.rotten()
		if !slices.ContainsFunc(v.chunks, func(name blob.Name) bool {
			without := lost
			for i, at := range m.gone[name] {
				if at >= p.from {
					without = without.with(i)
				}
			}
			return m.without(p, without).count() >= p.quorum
		}) {
			return true
		}
	}
	return len(v.chunks) == 0
}

// rotten returns the places that may hold corrupt chunks, which a writer takes
// for good ones if their sizes are right.
func (m *model) rotten() places {
	var found places
	for i, p := range m.world.places {
		if p.rotten {
			found = found.with(i)
		}
	}
	return found
}

// object returns the object with a manifest's name.
func (m *model) object(name blob.Name) *object {
	i := slices.IndexFunc(m.objects, func(o *object) bool { return o.blob == name })
	if i < 0 {
		return nil
	}
	return m.objects[i]
}

// version returns the version of an object that a manifest's blob is, or nil.
func (m *model) version(o *object, data []byte) *version {
	if known := m.known[string(data)]; known != nil {
		return known
	}
	opened, err := m.world.fixture.manifests.Open(o.blob, bytes.Clone(data))
	if err != nil {
		return nil
	}
	i := slices.IndexFunc(o.versions, func(v *version) bool { return v.number == opened.Version })
	if i < 0 {
		return nil
	}
	m.known[string(data)] = o.versions[i]
	return o.versions[i]
}

// copies returns the locations that hold a version, or a newer one.
func (m *model) copies(o *object, v *version) places {
	var found places
	for i, l := range m.world.members {
		if now := m.version(o, l.held(o.blob)); now != nil && !v.newer(now) {
			found = found.with(i)
		}
	}
	return found
}

// find returns the newest version that fits, or nil: two may have the same time.
func (o *object) find(fits func(*version) bool) *version {
	var found *version
	for _, v := range o.versions {
		if fits(v) && v.newer(found) {
			found = v
		}
	}
	return found
}

// shows reports whether the time and size that a command tells of an object are a
// version's.
func (v *version) shows(m *model, modified time.Time, size int64) bool {
	return !v.deleted && v.number.Time == modified.UnixNano() && int64(len(m.world.fixture.contents[v.content])) == size
}
