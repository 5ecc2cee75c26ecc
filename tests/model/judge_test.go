package model

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/store"
)

func (cmd *command) String() string {
	text := fmt.Sprintf("command %d (%s)", cmd.number, cmd.step)
	switch {
	case cmd.end == 0:
		return text
	case cmd.dead:
		text += ": killed"
	case cmd.err != nil:
		text += ": " + cmd.err.Error()
	default:
		text += ": ok"
	}
	if cmd.last != nil {
		text += fmt.Sprintf(", wrote %s", cmd.last)
	}
	return fmt.Sprintf("%s; failed %s, lied %s", text, cmd.failed, cmd.lied)
}

// judge compares what a command answered with the model.
func (m *model) judge(c *command) {
	o := m.objects[c.step.object]
	switch c.do {
	case put:
		m.judgePut(c, o)
	case remove:
		m.judgeRemove(c, o)
	case get, stat:
		m.judgeRead(c, o)
	case ls:
		m.judgeList(c)
	case check, repairs:
		m.judgeReport(c)
	case collect:
		m.judgeCollection(c)
	case bury:
		m.judgeBurial(c)
	}
}

// overlapped reports whether another command that may change something, and fits,
// was under way at the same time.
func (m *model) overlapped(c *command, fits func(*command) bool) bool {
	return slices.ContainsFunc(m.commands, func(e *command) bool {
		return e != c && e.do.writes() && (e.end == 0 || e.end > c.start) && fits(e)
	})
}

func anyCommand(*command) bool { return true }

// writing returns a function that reports whether a command writes an object.
func writing(o *object) func(*command) bool {
	return func(e *command) bool {
		return e.do == repairs || (e.do == put || e.do == remove) && objectNames[e.step.object] == o.name
	}
}

// harmedSince reports whether anything was lost since a moment.
func (m *model) harmedSince(moment int) bool {
	return slices.ContainsFunc(m.world.places, func(p *place) bool { return p.harmed >= moment })
}

// opened reports whether some location can have given the command the key header.
func (m *model) opened(c *command) bool {
	return slices.ContainsFunc(m.world.members, func(l *member) bool {
		return l.complete(blob.Header(), m.isHeader).minus(c.unread()).count() >= l.data
	})
}

// isHeader reports whether something is the cluster's key header.
func (m *model) isHeader(data []byte) bool { return bytes.Equal(data, m.world.fixture.cluster.Header) }

// mustSucceed reports whether a write has no excuse to fail.
func (m *model) mustSucceed(c *command, o *object) bool {
	return !c.cancelled && !c.session.unfinished && c.lied == 0 && m.rotten() == 0 && m.opened(c) && !m.harmedSince(c.start) &&
		m.world.unable(c.missed()).count() <= len(m.world.members)-c.client.quorum &&
		!m.overlapped(c, func(e *command) bool { return e.do == collect || e.do == bury || writing(o)(e) }) &&
		!(errors.Is(c.err, store.ErrRemoving) && slices.ContainsFunc(m.commands, func(e *command) bool { return e.do == bury }))
}

func (m *model) judgePut(c *command, o *object) {
	if c.err != nil {
		if m.mustSucceed(c, o) {
			m.fail("it fails without a reason: %w", c.err)
		}
		return
	}
	if len(c.sent) == 0 {
		m.judgeSuperseded(c, o, c.outcome.object.Modified.UnixNano())
		return
	}
	// It may have been sent in several versions, if there was one of the same time.
	i := slices.IndexFunc(c.sent, func(v *version) bool {
		return v.content == c.step.content && v.shows(m, c.outcome.object.Modified, c.outcome.object.Size)
	})
	if i < 0 {
		m.fail("it says that it stored something else than %s", c.sent)
		return
	}
	m.acknowledged(c, o, c.sent[i])
}

func (m *model) judgeRemove(c *command, o *object) {
	floor := m.floor(o, c.start, c.unread())
	switch {
	case c.err == nil:
		switch tombstone := m.buried(c, o, floor); {
		case c.last != nil && c.last.deleted:
			m.acknowledged(c, o, c.last)
		case tombstone != nil:
			m.acknowledged(c, o, tombstone)
		default:
			m.judgeSuperseded(c, o, c.clock.UnixNano())
		}
	case errors.Is(c.err, store.ErrNotFound):
		if !m.mayBeAbsent(c, o, floor) {
			return
		}
		// Only if a quorum has the tombstone: that is as good as a success.
		if tombstone := m.buried(c, o, floor); tombstone != nil {
			m.acknowledged(c, o, tombstone)
			return
		}
		if o.leaving() {
			return
		}
		if floor != nil || !m.overlapped(c, writing(o)) &&
			slices.ContainsFunc(o.versions, func(v *version) bool { return m.copies(o, v).minus(m.without(promise{}, c.unread())) != 0 }) {
			m.fail("no such object, it says, and no tombstone is at a quorum of locations")
		}
	case m.mustSucceed(c, o) && floor != nil:
		m.fail("it fails without a reason: %w", c.err)
	}
}

// buried returns a tombstone of an object that a quorum has for good, no older than a
// version, or nil.
func (m *model) buried(c *command, o *object, floor *version) *version {
	for _, v := range o.versions {
		if v.deleted && !floor.newer(v) && m.durable(c, o, v).count() >= c.client.quorum {
			return v
		}
	}
	return nil
}

// judgeSuperseded checks that somebody has stored a version with a later time than a
// command's, so that the command succeeded by giving way.
func (m *model) judgeSuperseded(c *command, o *object, time int64) {
	for _, v := range o.versions {
		if v.sender != c && v.number.Time > time && m.durable(c, o, v).count() >= c.client.quorum {
			return
		}
	}
	m.fail("it succeeds, and has written nothing")
}

// durable returns the locations at which a version, or a newer one, is certain to
// be after a power cut, or would be if they hadn't lost it or lied meanwhile.
func (m *model) durable(c *command, o *object, v *version) places {
	there := c.lied | m.broken(promise{from: c.start}) | o.undone(v, c.start)
	return m.atLocations(there, o.blob, func(data []byte) bool {
		now := m.version(o, data)
		return now != nil && !v.newer(now)
	})
}

// atLocations returns the locations at which a blob is certain to be after a power
// cut, with some places of which this is so in any case.
func (m *model) atLocations(there places, name blob.Name, fits func(content []byte) bool) places {
	var found places
	for i, l := range m.world.members {
		if ((l.holders(name, (*place).durable, fits) | there) & l.all).count() >= l.need {
			found = found.with(i)
		}
	}
	return found
}

// acknowledged enters that a command has acknowledged a version, once it is made
// sure that it could.
func (m *model) acknowledged(c *command, o *object, v *version) {
	if n := m.durable(c, o, v).count(); n < c.client.quorum {
		m.fail("%s is acknowledged with %d of %d copies", v, n, c.client.quorum)
	}
	there := c.lied | m.broken(promise{from: c.start}) | m.rotten()
	for _, name := range v.chunks {
		at := m.atLocations(there, name, func(data []byte) bool { return bytes.Equal(data, m.bytes[name]) })
		if at.count() < c.client.quorum {
			m.fail("%s is acknowledged with %d of %d copies of a chunk", v, at.count(), c.client.quorum)
		}
	}
	now := m.world.tick()
	v.promises = append(v.promises, promise{quorum: c.client.quorum, from: c.start, at: now, maker: c})
	if c.failed|c.lied|m.rotten() != 0 || c.cancelled || m.harmedSince(c.start) || m.overlapsStill(c, o) {
		return
	}
	// Whoever wrote last has seen everything: the newest version is settled.
	newest := m.newest(o)
	if n := m.copies(o, newest).count(); n < c.client.quorum {
		m.fail("%s is left at %d locations", newest, n)
	}
	if newest.sender == c || len(newest.promises) > 0 {
		newest.promises = append(newest.promises, promise{quorum: c.client.quorum, from: now, at: now, spare: m.spare(o, newest)})
	}
}

// spare returns how many more parts have a version and its chunks, at each location,
// than it takes to read them.
func (m *model) spare(o *object, v *version) []int {
	spare := make([]int, len(m.world.members))
	for i, l := range m.world.members {
		least := l.holders(o.blob, (*place).durable, func(data []byte) bool { return m.version(o, data) == v }).count()
		for _, name := range v.chunks {
			least = min(least, l.holders(name, (*place).durable, func(data []byte) bool { return bytes.Equal(data, m.bytes[name]) }).count())
		}
		spare[i] = max(least-l.data, 0)
	}
	return spare
}

// overlapsStill reports whether somebody else is still writing an object.
func (m *model) overlapsStill(c *command, o *object) bool {
	return m.overlapped(c, func(e *command) bool { return e.end == 0 && writing(o)(e) })
}

// newest returns the newest version that any location holds.
func (m *model) newest(o *object) *version {
	var newest *version
	for _, l := range m.world.members {
		if v := m.version(o, l.held(o.blob)); v != nil && v.newer(newest) {
			newest = v
		}
	}
	return newest
}

// mayBeAbsent checks that an object may be said not to exist.
func (m *model) mayBeAbsent(c *command, o *object, floor *version) bool {
	m.checkMark(c, o, nil)
	for _, v := range o.versions {
		if v.deleted && !floor.newer(v) {
			return true
		}
	}
	switch {
	case floor != nil:
		m.fail("%s doesn't exist, it says; %s was acknowledged", o.name, floor)
	case c.blinded() != 0 && c.do != ls:
		m.fail("%s doesn't exist, it says; and %s could not tell", o.name, c.blinded())
	default:
		return true
	}
	return false
}

func (m *model) judgeRead(c *command, o *object) {
	floor := m.floor(o, c.start, c.unread())
	switch {
	case errors.Is(c.err, store.ErrNotFound):
		m.mayBeAbsent(c, o, floor)
		m.checkDoubt(c, o, nil)
	case c.err != nil:
		if m.mustRead(c, o, floor) {
			m.fail("it can't be read: %w", c.err)
		}
	default:
		found := o.find(func(v *version) bool {
			return v.shows(m, c.outcome.object.Modified, c.outcome.object.Size) &&
				(c.do == stat || bytes.Equal(c.outcome.content, m.world.fixture.contents[v.content]))
		})
		if found == nil {
			m.fail("what is read was never stored")
			return
		}
		m.checkFound(c, o, found)
	}
}

// checkFound checks that a version may be what a reader finds.
func (m *model) checkFound(c *command, o *object, found *version) {
	if floor := m.floor(o, c.start, c.unread()); floor != nil && floor.newer(found) {
		m.fail("%s is found; %s was acknowledged", found, floor)
	}
	m.checkDoubt(c, o, found)
	m.checkBack(c, o, found)
	m.checkMark(c, o, found)
}

// checkDoubt checks that a reader who found an old version, because too many
// locations could not be read, was warned.
func (m *model) checkDoubt(c *command, o *object, found *version) {
	if c.unread() != c.missed() || c.cancelled || c.session.warned.Load() {
		return
	}
	for _, v := range o.versions {
		if found == nil && slices.ContainsFunc(o.versions, func(t *version) bool { return t.deleted && !v.newer(t) }) {
			continue
		}
		if v.newer(found) && slices.ContainsFunc(v.promises, func(p promise) bool {
			return p.at < c.start && p.quorum >= min(c.client.quorum, len(m.world.members)/2+1) && m.holds(o, v, p, 0) && !m.denied(c, p)
		}) {
			m.fail("%s is found, not %s, and nobody is warned", found, v)
		}
	}
}

// denied reports whether parts of a set have lost what was promised, and deny it, while
// others could not be asked: together more than a set can do without.
func (m *model) denied(c *command, p promise) bool {
	return slices.ContainsFunc(m.world.members, func(l *member) bool {
		return l.coded() && m.broken(p)&l.all != 0 && c.unread()&l.all != 0
	})
}

// wary reports whether a set may refuse to serve a version because so many parts can't
// be read that a newer one of which it has seen something may have been acknowledged.
func (m *model) wary(c *command) bool {
	return slices.ContainsFunc(m.world.members, func(l *member) bool {
		return l.coded() && ((c.unread()|m.rotten())&l.all).count() > l.need-l.data
	})
}

// mustRead reports whether an object has to be readable.
func (m *model) mustRead(c *command, o *object, floor *version) bool {
	if c.cancelled || floor == nil && (c.unread()|m.rotten() != 0 || len(o.versions) > 0) || !m.opened(c) || m.wary(c) || m.rolledBack(o, floor) {
		return false
	}
	return !slices.ContainsFunc(o.versions, func(v *version) bool { return !floor.newer(v) && !m.readable(v, c.unread()) })
}

func (m *model) judgeList(c *command) {
	excused := c.cancelled || c.unread()|m.rotten() != 0 || !m.opened(c)
	if c.err != nil && !excused {
		m.fail("it fails without a reason: %w", c.err)
	}
	if c.err != nil && len(c.listed) == 0 {
		return
	}
	seen := map[string]bool{}
	for _, row := range c.listed {
		i := slices.Index(objectNames, row.Name)
		if i < 0 || seen[row.Name] || !strings.HasPrefix(row.Name, prefixes[c.option]) {
			m.fail("it lists %s", row.Name)
			return
		}
		seen[row.Name] = true
		o := m.objects[i]
		found := o.find(func(v *version) bool { return v.shows(m, row.Modified, row.Size) })
		if found == nil {
			m.fail("it lists a version of %s that was never stored", row.Name)
			return
		}
		m.checkFound(c, o, found)
	}
	for _, o := range m.objects {
		if c.err == nil && !seen[o.name] && strings.HasPrefix(o.name, prefixes[c.option]) {
			m.mayBeAbsent(c, o, m.floor(o, c.start, c.unread()))
			m.checkDoubt(c, o, nil)
		}
	}
}
