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
type model struct {
	world    *world
	objects  []*object
	commands []*command
	// bytes are the chunks that were ever sent.
	bytes map[blob.Name][]byte
	// gone says when gc last deleted a chunk at each location.
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
}

// setback is that a location had a version replaced by an older one, which happens
// when somebody writes an object who began before the newer version was there. He
// puts it right himself, if he lives.
type setback struct {
	place, at int
	to        manifest.Version
}

func newModel(w *world) *model {
	m := &model{world: w, bytes: map[blob.Name][]byte{}, gone: map[blob.Name]map[int]int{}}
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

// broken returns the locations that have lost what a promise was about, as far as
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

// holds reports whether a promise of a version's manifest is still good for who
// can't read some locations.
func (m *model) holds(o *object, v *version, p promise, unread places) bool {
	lost := m.broken(p) | unread
	for _, s := range o.setbacks {
		if s.at >= p.from && s.to.Compare(v.number) < 0 {
			lost = lost.with(s.place)
		}
	}
	return lost.count() < p.quorum
}

// floor returns the newest version that somebody who can't read some locations must
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
// read some locations.
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
			return without.count() >= p.quorum
		}) {
			return true
		}
	}
	return len(v.chunks) == 0
}

// rotten returns the locations that may hold corrupt chunks, which a writer takes
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
	opened, err := m.world.fixture.manifests.Open(o.blob, bytes.Clone(data))
	if err != nil {
		return nil
	}
	i := slices.IndexFunc(o.versions, func(v *version) bool { return v.number == opened.Version })
	if i < 0 {
		return nil
	}
	return o.versions[i]
}

// sent notes what a command sends to a location.
func (m *model) sent(c *command, name blob.Name, data []byte) {
	if !c.do.writes() || c.do == collect && c.step.content > 0 {
		m.fail("it writes %s", name.Kind)
	}
	switch name.Kind {
	case blob.KindChunk:
		if known := m.bytes[name]; known != nil && !bytes.Equal(known, data) {
			m.fail("a chunk is sealed in two ways")
		}
		m.bytes[name] = bytes.Clone(data)
	case blob.KindManifest:
		m.sentManifest(c, name, data)
	}
}

func (m *model) sentManifest(c *command, name blob.Name, data []byte) {
	o := m.object(name)
	if o == nil {
		m.fail("a manifest of no object is written")
		return
	}
	v := m.version(o, data)
	if v == nil {
		opened, err := m.world.fixture.manifests.Open(name, bytes.Clone(data))
		if err != nil {
			m.fail("a manifest is written that is corrupt")
			return
		}
		v = m.add(o, c, opened)
	}
	if v.newer(c.last) && (c.do != remove || v.deleted) {
		c.last = v
	}
}

// add enters a new version.
func (m *model) add(o *object, c *command, opened *manifest.Manifest) *version {
	v := &version{
		label: fmt.Sprintf("%s@%d", o.name, len(o.versions)+1), number: opened.Version, deleted: opened.Deleted, content: -1, sender: c,
	}
	for _, ref := range opened.Chunks {
		v.chunks = append(v.chunks, m.world.fixture.chunks.Name(ref))
	}
	if !v.deleted {
		v.content = slices.IndexFunc(m.world.fixture.contents, func(content []byte) bool { return int64(len(content)) == opened.Size })
		for i, ids := range m.world.fixture.ids {
			same := func(i int) bool { return i < len(opened.Chunks) && opened.Chunks[i].ID == ids[i] }
			if len(ids) == len(opened.Chunks) && len(ids) > 0 && same(0) && same(len(ids)-1) {
				v.content = i
			}
		}
	}
	v.stored = []promise{{quorum: c.client.quorum, from: c.start, at: c.start, maker: c}}
	for _, earlier := range o.versions {
		if slices.Equal(earlier.chunks, v.chunks) && len(c.sent) > 0 {
			// It was put back: its chunks are those of an earlier put.
			v.stored = slices.Concat(earlier.stored, earlier.promises)
		}
	}
	o.versions = append(o.versions, v)
	c.sent = append(c.sent, v)
	return v
}

// aboutToPut is told what a location is going to hold.
func (m *model) aboutToPut(c *command, p *place, name blob.Name, data []byte) {
	if name.Kind != blob.KindManifest {
		return
	}
	o := m.object(name)
	next, now := m.version(o, data), m.version(o, p.peek(name))
	if floor := m.floor(o, c.start, c.unread()); floor.newer(next) && floor != nil {
		m.fail("%s is written, though %s was acknowledged and is newer", next, floor)
	}
	if now != nil && now.newer(next) {
		o.setbacks = append(o.setbacks, setback{p.index, m.world.tick(), next.number})
	}
}

// aboutToDelete is told what a location is going to lose.
func (m *model) aboutToDelete(c *command, p *place, name blob.Name) {
	switch {
	case name.Kind == blob.KindRecord && c.do == repairs:
	case name.Kind == blob.KindManifest && c.do == repairs:
		o := m.object(name)
		if o == nil {
			return
		}
		if now := m.version(o, p.peek(name)); now != nil && !c.lied.has(p.index) {
			m.fail("%s is deleted at %s", now, p.memory)
		}
		o.setbacks = append(o.setbacks, setback{p.index, m.world.tick(), manifest.Version{}})
	case name.Kind == blob.KindChunk && c.do == collect && c.step.content == 0:
		m.checkGrace(c)
		for _, o := range m.objects {
			m.checkUnused(c, o, name)
		}
		if m.gone[name] == nil {
			m.gone[name] = map[int]int{}
		}
		m.gone[name][p.index] = m.world.tick()
	default:
		m.fail("it deletes a %s", name.Kind)
	}
}

// checkGrace checks that an earlier collection can have found a chunk unreferenced
// so long ago as the grace period asks for.
func (m *model) checkGrace(c *command) {
	if m.world.script.skewed() {
		return
	}
	latest := c.client.now().Add(-graces[c.option])
	if !slices.ContainsFunc(m.commands, func(e *command) bool {
		return e != c && e.do == collect && e.step.content == 0 && !e.clock.After(latest)
	}) {
		m.fail("a chunk is deleted within the grace period")
	}
}

// checkUnused checks that no version of an object needs a chunk, apart from
// those that a newer one has replaced for good: one that is acknowledged, or at so
// many locations that it is as good as that.
func (m *model) checkUnused(c *command, o *object, chunk blob.Name) {
	unread := c.unread()
	base := m.floor(o, m.world.moment+1, unread)
	if base == nil && (unread|m.rotten()) != 0 {
		return
	}
	need := max(c.client.quorum, len(m.world.places)/2+1)
	var newest *version
	for _, v := range o.versions {
		copies := m.copies(o, v)
		if copies.minus(unread).count() >= need && v.newer(base) {
			base = v
		}
		if copies != 0 && v.newer(newest) {
			newest = v
		}
	}
	if base == nil {
		base = newest
	}
	for _, v := range o.versions {
		if base.newer(v) || !slices.Contains(v.chunks, chunk) || m.copies(o, v) == 0 {
			continue
		}
		// One that is being written while gc runs is its writer's concern.
		if len(v.promises) > 0 || v.sender.end != 0 && v.sender.end < c.start {
			m.fail("a chunk of %s is deleted", v)
		}
	}
}

// copies returns the locations that hold a version, or a newer one.
func (m *model) copies(o *object, v *version) places {
	var found places
	for i, p := range m.world.places {
		if now := m.version(o, p.peek(o.blob)); now != nil && !v.newer(now) {
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
