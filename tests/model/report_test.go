package model

import (
	"bytes"
	"slices"
	"strings"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/store/repair"
)

// stock is what check has to say of the locations.
type stock struct {
	repair.Report
	// unclear is set when it depends on more than what the locations hold.
	unclear bool
	// unsettled is set when the newest version of an object is at fewer locations
	// than a majority.
	unsettled bool
	inUse     map[blob.Name]bool
}

// takeStock looks at what the locations hold.
func (m *model) takeStock(verify bool) *stock {
	s := &stock{inUse: map[blob.Name]bool{}}
	s.Locations = make([]repair.LocationReport, len(m.world.members))
	for _, o := range m.objects {
		m.countManifests(s, o)
	}
	for name := range s.inUse {
		m.countChunk(s, name, verify)
	}
	for _, o := range m.objects {
		if v := m.newest(o); v != nil && slices.ContainsFunc(v.chunks, func(name blob.Name) bool { return !m.present(name, verify) }) {
			s.Damaged = append(s.Damaged, o.name)
		}
	}
	for i, l := range m.world.members {
		row := &s.Locations[i]
		switch header := l.held(blob.Header()); {
		case header == nil:
			row.Missing++
		case m.isHeader(header):
			row.Blobs++
		default:
			row.Blobs++
			row.Corrupt++
		}
	}
	unreferenced := map[blob.Name]bool{}
	for _, p := range m.world.places {
		for _, name := range p.names(blob.KindChunk) {
			if !s.inUse[name] {
				unreferenced[name] = true
			}
		}
	}
	s.InUse, s.Unreferenced = len(s.inUse), len(unreferenced)
	return s
}

func (m *model) countManifests(s *stock, o *object) {
	newest := m.newest(o)
	s.unclear = s.unclear || m.rolledBack(o, newest)
	if newest == nil {
		s.unclear = s.unclear || slices.ContainsFunc(m.world.places, func(p *place) bool { return p.peek(o.blob) != nil })
		return
	}
	for i, l := range m.world.members {
		row := &s.Locations[i]
		s.unclear = s.unclear || m.ambiguous(l, o.blob)
		data := l.held(o.blob)
		if data == nil {
			if newest.deleted && o.leaving() {
				s.unclear = true
			} else {
				row.Missing++
			}
			continue
		}
		row.Blobs++
		switch v := m.version(o, data); {
		case v == nil:
			row.Corrupt++
		case v != newest:
			row.Stale++
		}
		m.countLacking(row, l, o.blob, func(data []byte) bool { return m.version(o, data) == newest })
	}
	s.unsettled = s.unsettled || m.copies(o, newest).count() <= len(m.world.members)/2
	if newest.deleted {
		s.Deleted++
		return
	}
	s.Objects++
	for _, name := range newest.chunks {
		s.inUse[name] = true
	}
}

// ambiguous reports whether it depends on more than the shards that parts have which
// version of a blob is read: some part has something else.
func (m *model) ambiguous(l *member, name blob.Name) bool {
	return l.coded() && l.tally(name, func(p *place) [][]byte { return [][]byte{p.peek(name)} }).unusable > 0
}

// countLacking counts the parts of an erasure-coded set that lack their shard of what
// is read.
func (m *model) countLacking(row *repair.LocationReport, l *member, name blob.Name, fits func([]byte) bool) {
	if l.coded() {
		row.Missing += l.all.minus(l.complete(name, fits)).count()
	}
}

// intact returns the places whose copies, or shards, of a chunk check counts as good.
func (m *model) intact(l *member, name blob.Name, verify bool) places {
	good := l.sized(name, int64(len(m.bytes[name])))
	if verify {
		good = l.complete(name, func(data []byte) bool { return bytes.Equal(data, m.bytes[name]) })
	}
	if good.count() < l.data {
		return 0
	}
	return good
}

// present reports whether any location has a good copy of a chunk.
func (m *model) present(name blob.Name, verify bool) bool {
	return slices.ContainsFunc(m.world.members, func(l *member) bool { return m.intact(l, name, verify) != 0 })
}

func (m *model) countChunk(s *stock, name blob.Name, verify bool) {
	for i, l := range m.world.members {
		row := &s.Locations[i]
		good := m.intact(l, name, verify)
		switch {
		case l.coded():
			row.Missing += l.all.minus(good).count()
		case !l.parts[0].has(name):
			row.Missing++
		case good != 0:
			row.Blobs++
		default:
			row.Blobs++
			row.Corrupt++
		}
	}
}

// judgeReport compares a check's or a repair's report with the model.
func (m *model) judgeReport(c *command) {
	quiet := c.unread() == 0 && !c.cancelled && c.before != nil && !m.overlapped(c, anyCommand) && !m.harmedSince(c.start)
	if c.err != nil {
		if quiet && m.opened(c) {
			m.fail("it fails without a reason: %w", c.err)
		}
		return
	}
	for _, damaged := range c.report.Damaged {
		m.checkDamaged(c, damaged)
	}
	for i, row := range c.report.Locations {
		if c.session.refused&m.world.members[i].all != 0 && row.Err == nil && !row.Foreign {
			m.fail("it doesn't say that %s is unreachable", row.Location)
		}
	}
	if !quiet {
		return
	}
	verify := c.option > 0
	if !c.before.unclear && (c.do == check || verify || m.rotten() == 0) {
		m.compare(c, c.before)
	}
	if c.report.Err() != nil {
		return
	}
	after := m.takeStock(verify)
	for _, row := range after.Locations {
		if row.Missing+row.Stale+row.Corrupt > 0 {
			m.fail("all is well, it says, and it isn't at %s", row.Location)
		}
	}
	for _, l := range m.world.members {
		// Not counted before: whoever opens the cluster has what is lacking mended.
		if lacking := l.all.minus(l.complete(blob.Header(), m.isHeader)); lacking != 0 {
			m.fail("all is well, it says, and the key header isn't whole at %s", lacking)
		}
	}
	now := m.world.tick()
	for _, o := range m.objects {
		if v := m.newest(o); v != nil {
			v.promises = append(v.promises, promise{quorum: m.durable(c, o, v).count(), from: now, at: now, spare: m.spare(o, v)})
		}
	}
	for _, p := range m.world.places {
		p.rotten = p.rotten && !(verify && m.sound(p))
	}
}

// sound reports whether a location has no corrupt chunk. One that no object uses
// isn't read by a repair, and is counted on by the next object with its content.
func (m *model) sound(p *place) bool {
	for name, content := range m.bytes {
		held := p.peek(name)
		if held != nil && p.member.coded() {
			found, ok := p.member.shards(name, held)
			if !ok || !found[0].intact {
				return false
			}
			held = found[0].content
		}
		if held != nil && !bytes.Equal(held, content) {
			return false
		}
	}
	return true
}

// checkDamaged checks that an object may be damaged.
func (m *model) checkDamaged(c *command, damaged string) {
	name, _, unreadable := strings.Cut(damaged, " (")
	for _, o := range m.objects {
		floor := m.floor(o, c.start, c.unread())
		if floor == nil {
			continue
		}
		if unreadable && name == o.blob.String() ||
			name == o.name && !slices.ContainsFunc(o.versions, func(v *version) bool {
				return !floor.newer(v) && !m.readable(v, c.unread())
			}) {
			m.fail("it says that %s is damaged", o.name)
		}
	}
}

// compare compares a report with what it should be.
func (m *model) compare(c *command, want *stock) {
	got := c.report
	if got.Objects != want.Objects || got.Deleted != want.Deleted || got.InUse != want.InUse || got.Unreferenced != want.Unreferenced {
		m.fail("it counts %d objects, %d deleted, %d chunks in use, %d unreferenced; there are %d, %d, %d, %d",
			got.Objects, got.Deleted, got.InUse, got.Unreferenced, want.Objects, want.Deleted, want.InUse, want.Unreferenced)
	}
	if !slices.Equal(got.Damaged, want.Damaged) {
		m.fail("it says that %q are damaged; %q are", got.Damaged, want.Damaged)
	}
	for i, row := range got.Locations {
		w := want.Locations[i]
		if m.world.members[i].coded() {
			// It also counts shards of what nothing needs, and each blob once.
			if row.Missing+row.Stale+row.Corrupt == 0 && w.Missing+w.Stale+w.Corrupt > 0 {
				m.fail("it finds nothing wrong at %s; %d are missing, %d stale, %d corrupt", row.Location, w.Missing, w.Stale, w.Corrupt)
			}
			continue
		}
		if row.Blobs != w.Blobs || row.Missing != w.Missing || row.Stale != w.Stale || row.Corrupt != w.Corrupt {
			m.fail("it counts %d blobs, %d missing, %d stale, %d corrupt at %s; there are %d, %d, %d, %d",
				row.Blobs, row.Missing, row.Stale, row.Corrupt, row.Location, w.Blobs, w.Missing, w.Stale, w.Corrupt)
		}
	}
}

// judgeCollection compares what gc did with the model.
func (m *model) judgeCollection(c *command) {
	if !m.quiet(c) || c.before.unclear {
		return
	}
	if c.err != nil {
		m.fail("it fails without a reason: %w", c.err)
		return
	}
	// gc also counts what older versions use that may yet come back.
	unsettled := c.before.unsettled || c.client.quorum > len(m.world.members)/2+1
	if r := c.result; !unsettled && (r.InUse != c.before.InUse || r.Deleted+r.Waiting != c.before.Unreferenced) {
		m.fail("it counts %d chunks in use, %d deleted, %d waiting; there are %d in use, %d unreferenced",
			r.InUse, r.Deleted, r.Waiting, c.before.InUse, c.before.Unreferenced)
	}
}

// quiet reports whether a collection has no excuse to fail.
func (m *model) quiet(c *command) bool {
	return c.unread() == 0 && !c.cancelled && c.before != nil && !m.overlapped(c, anyCommand) &&
		!m.harmedSince(c.start) && m.rotten() == 0 && m.opened(c)
}
