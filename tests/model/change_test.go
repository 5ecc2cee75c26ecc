package model

import (
	"bytes"
	"fmt"
	"slices"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/store/manifest"
)

// sent notes what a command sends to a place.
func (m *model) sent(c *command, p *place, name blob.Name, data []byte) {
	if (c.do == check || c.dry()) && name != blob.Header() || !p.member.coded() && !c.do.writes() {
		m.fail("it writes a %s", name.Kind)
	}
	if !p.member.coded() {
		m.sentBlob(c, name, data)
		return
	}
	for _, content := range m.sentShards(p, name, data) {
		m.sentBlob(c, name, content)
	}
}

// sentShards returns the blobs of which a part is sent shards that it lacks. Whoever
// reads may have parts sent what they lack, but only of what somebody has stored.
func (m *model) sentShards(p *place, name blob.Name, data []byte) [][]byte {
	found, ok := p.member.shards(name, data)
	if !ok {
		m.fail("what it writes is no shard")
		return nil
	}
	now, _ := p.member.shards(name, p.content(name))
	var sent [][]byte
	for _, s := range found {
		if s.content == nil || !s.intact {
			m.fail("it writes a shard of a %s that nobody stored", name.Kind)
			return nil
		}
		if !has(now, s.id) {
			sent = append(sent, s.content)
		}
	}
	return sent
}

func (m *model) sentBlob(c *command, name blob.Name, data []byte) {
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
		label: fmt.Sprintf("%s@%d", o.name, len(o.versions)+1), number: opened.Version, deleted: opened.Deleted, content: -1, sender: c, born: m.world.tick(),
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

// aboutToPut is told what a place is going to hold.
func (m *model) aboutToPut(c *command, p *place, name blob.Name, data []byte) {
	if name.Kind != blob.KindManifest {
		return
	}
	o := m.object(name)
	if p.member.coded() {
		m.aboutToChange(c, p, o, data)
		return
	}
	next, now := m.version(o, data), m.version(o, p.peek(name))
	if floor := m.floor(o, c.start, c.unread()); floor.newer(next) && floor != nil {
		m.fail("%s is written, though %s was acknowledged and is newer", next, floor)
	}
	if now != nil && now.newer(next) {
		if !c.lied.has(p.index) {
			m.fail("%s is written over %s at %s", next, now, p.memory)
		}
		o.setbacks = append(o.setbacks, setback{place: p.index, at: m.world.tick(), to: next.number})
	}
}

// aboutToChange is told which shards of a manifest a part is going to hold. It may
// drop a version only when a newer one, or the same, is certain to be at enough
// parts.
func (m *model) aboutToChange(c *command, p *place, o *object, data []byte) {
	l := p.member
	now, _ := l.shards(o.blob, p.content(o.blob))
	next, _ := l.shards(o.blob, data)
	var top *version
	if len(next) > 0 {
		top = m.version(o, next[0].content)
	}
	floor := m.floor(o, c.start, c.unread())
	// What a part has made up, it may get back.
	if top != nil && floor.newer(top) && !has(now, next[0].id) && l.vouching(o.blob, next[0].id) < l.data && !c.lied.has(p.index) {
		m.fail("%s is written, though %s was acknowledged and is newer", top, floor)
	}
	for _, s := range now {
		v := m.version(o, s.content)
		if v == nil || !s.intact {
			continue
		}
		lost := !has(next, s.id) && !m.replaced(p, o, v, data)
		if lost && v == floor && l.vouching(o.blob, s.id) >= l.need {
			m.fail("a shard of %s is dropped at %s, and no newer version is at enough parts", v, p.memory)
		}
		switch {
		case top != nil && v.newer(top):
			o.setbacks = append(o.setbacks, setback{place: p.index, at: m.world.tick(), to: top.number})
		case lost:
			o.setbacks = append(o.setbacks, setback{place: p.index, at: m.world.tick(), dropped: v})
		}
	}
}

// replaced reports whether a version, or a newer one, is certain to be at as many parts
// as a write needs, once one of them holds something else.
func (m *model) replaced(p *place, o *object, v *version, next []byte) bool {
	t := p.member.tally(o.blob, func(q *place) [][]byte {
		now := q.content(o.blob)
		if q == p {
			now = next
		}
		return [][]byte{now, q.durable(o.blob)}
	})
	for _, found := range t.versions {
		w := m.version(o, found.content)
		if w == nil || v.newer(w) {
			continue
		}
		there := found.parts | o.undone(w, w.born)
		for _, q := range p.member.parts {
			if q.deceives || q.harmed >= w.born {
				there = there.with(q.index)
			}
		}
		if (there & p.member.all).count() >= p.member.need {
			return true
		}
	}
	return false
}

// aboutToDelete is told what a place is going to lose.
func (m *model) aboutToDelete(c *command, p *place, name blob.Name) {
	switch {
	case name.Kind == blob.KindRecord && c.do == repairs:
	case name.Kind == blob.KindManifest && c.do == bury && c.step.content == 0:
		m.aboutToBury(c, p, m.object(name))
	case c.do == collect && p.member.coded() && name.Kind != blob.KindChunk && c.step.content == 0:
		// What a write has left that was cut short.
		if o := m.object(name); o != nil {
			m.aboutToChange(c, p, o, nil)
		}
	case name.Kind == blob.KindManifest && c.do == repairs:
		o := m.object(name)
		if o == nil {
			return
		}
		if now := m.version(o, p.member.held(name)); now != nil && c.lied&p.member.all == 0 {
			m.fail("%s is deleted at %s", now, p.memory)
		}
		o.setbacks = append(o.setbacks, setback{place: p.index, at: m.world.tick()})
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
	need := max(c.client.quorum, len(m.world.members)/2+1)
	var newest *version
	for _, v := range o.versions {
		if m.sure(o, v, unread).count() >= need && v.newer(base) {
			base = v
		}
		if m.copies(o, v) != 0 && v.newer(newest) {
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

// sure returns the locations that tell of a version, or a newer one, whatever some
// places say.
func (m *model) sure(o *object, v *version, unread places) places {
	var found places
	for i, l := range m.world.members {
		told := l.complete(o.blob, func(content []byte) bool {
			now := m.version(o, content)
			return now != nil && !v.newer(now)
		})
		enough := l.data
		if l.coded() {
			enough = max(l.data, 2) // one part alone may be outvoted
		}
		if told.minus(unread).count() >= enough {
			found = found.with(i)
		}
	}
	return found
}
