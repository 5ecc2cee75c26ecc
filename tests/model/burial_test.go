package model

import (
	"slices"
)

// burial is that the tombstone of an object was deleted while nobody else was at work.
type burial struct {
	version *version
	at      int
}

// aboutToBury is told which place is going to lose a tombstone. Every location must
// have it, for certain, or have lost it in this way: else one could bring the object
// back.
func (m *model) aboutToBury(c *command, p *place, o *object) {
	if o == nil {
		m.fail("a manifest of no object is deleted")
		return
	}
	tombstone := m.newest(o)
	if tombstone == nil {
		tombstone = o.find(func(v *version) bool { return v.deleted })
	}
	if tombstone == nil {
		m.fail("a manifest of %s is deleted, which was never removed", o.name)
		return
	}
	if !tombstone.deleted {
		// Who wrote it sees that his copies are being deleted, and doesn't say that it
		// is stored.
		if slices.ContainsFunc(tombstone.promises, func(p promise) bool { return p.at < c.start }) {
			m.fail("%s is deleted at %s", tombstone, p.memory)
		}
		return
	}
	for _, l := range m.world.members {
		for _, in := range []func(*place) []byte{
			func(p *place) []byte { return p.peek(o.blob) },
			func(p *place) []byte { return p.durable(o.blob) },
		} {
			if held := m.version(o, l.heldIn(o.blob, in)); held != nil && tombstone.newer(held) && !m.unsure(c, l) {
				m.fail("%s is deleted at %s, and %s has %s", tombstone, p.memory, l, held)
			}
		}
	}
	o.setbacks = append(o.setbacks, setback{place: p.index, at: m.world.tick(), buried: tombstone})
	if c.lied == 0 && !m.harmedSince(c.start) && !m.overlapped(c, anyCommand) {
		o.buried = append(o.buried, burial{tombstone, m.world.moment})
	}
}

// unsure reports whether a location may hold something else than a command was told.
func (m *model) unsure(c *command, l *member) bool {
	return c.lied&l.all != 0 || slices.ContainsFunc(l.parts, func(p *place) bool { return p.harmed >= c.start || p.rotten })
}

// leaving reports whether the tombstone of an object was deleted at some place.
func (o *object) leaving() bool {
	return slices.ContainsFunc(o.setbacks, func(s setback) bool { return s.buried != nil })
}

// checkBack checks that a version that is found was not brought back after its
// tombstone had been deleted.
func (m *model) checkBack(c *command, o *object, found *version) {
	for _, b := range o.buried {
		if b.version.newer(found) && found.born < b.at && c.lied == 0 && !m.harmedSince(b.at) {
			m.fail("%s is back after %s was deleted everywhere", found, b.version)
		}
	}
}

// judgeBurial compares what gc --tombstones did with the model.
func (m *model) judgeBurial(c *command) {
	switch {
	case !m.quiet(c) || c.before.unclear:
	case c.err != nil:
		m.fail("it fails without a reason: %w", c.err)
	case c.tombstones.Total != c.before.Deleted:
		m.fail("it counts %d tombstones; there are %d", c.tombstones.Total, c.before.Deleted)
	}
}
