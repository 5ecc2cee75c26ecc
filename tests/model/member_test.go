package model

import (
	"context"
	"fmt"
	"strings"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/ec"
)

// layout says what a location consists of: one place, or an erasure-coded set's
// parts, of which as many as data rebuild a blob.
type layout struct{ data, total int }

// plain returns the layout of so many locations without parts.
func plain(n int) []layout {
	layouts := make([]layout, n)
	for i := range layouts {
		layouts[i] = layout{1, 1}
	}
	return layouts
}

// coded are the layouts with erasure-coded sets: one that any part can read by
// itself, one that can't spare a part for a write, larger ones, and sets beside
// plain locations.
func coded() [][]layout {
	return [][]layout{
		{{2, 4}}, {{1, 3}}, {{4, 6}}, {{1, 1}, {2, 4}}, {{2, 3}}, {{2, 4}, {1, 1}, {1, 1}}, {{1, 3}, {2, 4}},
	}
}

// member is a location of the quorum: a place, or several as an erasure-coded set.
// The rules for both are the same, with other numbers.
type member struct {
	layout
	index int
	// need is how many parts must take a write.
	need  int
	parts []*place
	// all has the parts.
	all    places
	stored *stored
}

func newMember(index int, l layout) *member {
	need := 1
	if l.total > 1 {
		need = min(l.data+1, l.total)
	}
	return &member{layout: l, index: index, need: need, stored: &stored{blobs: map[storedKey][]byte{}}}
}

func (l *member) add(p *place) {
	l.parts = append(l.parts, p)
	l.all = l.all.with(p.index)
}

// coded reports whether the location is an erasure-coded set.
func (l *member) coded() bool { return l.total > 1 }

// String returns the location as in --repo.
func (l *member) String() string {
	names := strings.Split(l.all.String(), "")
	if !l.coded() {
		return names[0]
	}
	return fmt.Sprintf("ec:%d:%s", l.data, strings.Join(names, ";"))
}

// store puts a blob there before anybody else is at work.
func (l *member) store(name blob.Name, data []byte) error {
	if !l.coded() {
		return l.parts[0].memory.Put(context.Background(), name, data)
	}
	memory := make([]blob.Location, len(l.parts))
	for i, p := range l.parts {
		memory[i] = p.memory
	}
	location, err := ec.New(l.String(), l.data, memory)
	if err != nil {
		return err
	}
	l.stored.note(l, name, data)
	return location.Put(context.Background(), name, data)
}

// open returns the location as a process of a client sees it.
func (l *member) open(c *client) (blob.Location, error) {
	handles := make([]blob.Location, len(l.parts))
	for i, p := range l.parts {
		h := &handle{gate: &c.world.gate, client: c, place: p}
		p.handles = append(p.handles, h)
		handles[i] = h
	}
	if !l.coded() {
		return handles[0], nil
	}
	location, err := ec.New(l.String(), l.data, handles)
	return &set{Location: location, member: l, client: c}, err
}

// set is an erasure-coded set as a process sees it. It notes what is written, as the
// parts see shards only, and which manifests can't be told.
type set struct {
	*ec.Location
	member *member
	client *client
}

var (
	_ blob.Chooser   = (*set)(nil)
	_ blob.Completer = (*set)(nil)
	_ blob.Healer    = (*set)(nil)
)

func (s *set) Put(ctx context.Context, name blob.Name, data []byte) error {
	s.member.stored.note(s.member, name, data)
	return s.Location.Put(ctx, name, data)
}

func (s *set) PutMissing(ctx context.Context, name blob.Name, data []byte) error {
	s.member.stored.note(s.member, name, data)
	return s.Location.PutMissing(ctx, name, data)
}

func (s *set) Supersede(ctx context.Context, name blob.Name, limit int64, data []byte, stays func([]byte) bool) error {
	s.member.stored.note(s.member, name, data)
	return s.Location.Supersede(ctx, name, limit, data, stays)
}

func (s *set) Get(ctx context.Context, name blob.Name, buf []byte, limit int64) ([]byte, error) {
	data, err := s.Location.Get(ctx, name, buf, limit)
	s.noteRead(name, err)
	return data, err
}

func (s *set) GetAccepted(ctx context.Context, name blob.Name, buf []byte, limit int64, accept func([]byte) error) ([]byte, error) {
	refused := false
	data, err := s.Location.GetAccepted(ctx, name, buf, limit, func(data []byte) error {
		err := accept(data)
		refused = refused || err != nil
		return err
	})
	if !refused {
		s.noteRead(name, err)
	}
	return data, err
}

// noteRead notes that a manifest could not be read.
func (s *set) noteRead(name blob.Name, err error) {
	if err != nil && !answered(err) && name.Kind == blob.KindManifest {
		s.client.command.blind.Or(uint32(s.member.all))
	}
}

// held returns the blob that a reader of all parts finds, or nil. It is good until
// the next call.
func (l *member) held(name blob.Name) []byte {
	return l.heldIn(name, func(p *place) []byte { return p.peek(name) })
}

// heldIn is held with what the places hold told by a function.
func (l *member) heldIn(name blob.Name, in func(*place) []byte) []byte {
	if !l.coded() {
		return in(l.parts[0])
	}
	best := l.tally(name, func(p *place) [][]byte { return [][]byte{in(p)} }).best()
	if best == nil {
		return nil
	}
	return best.content
}

// holders returns the parts that hold what makes up a certain blob, in some version,
// as far as a function tells what a part holds. Of several versions it is the one
// with the most.
func (l *member) holders(name blob.Name, in func(*place, blob.Name) []byte, fits func(content []byte) bool) places {
	if !l.coded() {
		if data := in(l.parts[0], name); data != nil && fits(data) {
			return l.all
		}
		return 0
	}
	var most places
	for _, v := range l.tally(name, func(p *place) [][]byte { return [][]byte{in(p, name)} }).versions {
		if v.parts.count() > most.count() && v.content != nil && fits(v.content) {
			most = v.parts
		}
	}
	return most
}

// complete returns the parts that hold their shards of the blob that a reader of all
// of them finds, if that is a certain one.
func (l *member) complete(name blob.Name, fits func(content []byte) bool) places {
	if !l.coded() {
		return l.holders(name, (*place).peek, fits)
	}
	best := l.tally(name, func(p *place) [][]byte { return [][]byte{p.peek(name)} }).best()
	if best == nil || best.content == nil || !fits(best.content) {
		return 0
	}
	return best.parts
}

// sized returns the parts that hold something as long as their piece of a blob of
// that size.
func (l *member) sized(name blob.Name, size int64) places {
	var found places
	for i, p := range l.parts {
		want := size
		if l.coded() {
			want = l.recordSize(size, i)
		}
		if info, err := p.memory.Stat(context.Background(), name); err == nil && info.Size == want {
			found = found.with(p.index)
		}
	}
	return found
}

// losses counts the parts that are lost, for comparing with what may be. Where one
// part is enough to read, one that shows something old speaks against a version, so
// that it counts for two.
func (l *member) losses(lost places) int {
	n := 0
	for _, p := range l.parts {
		if !lost.has(p.index) {
			continue
		}
		n++
		if l.coded() && l.data == 1 && p.deceives {
			n++
		}
	}
	return n
}

// unable returns the locations that can't take a write without those places.
func (w *world) unable(without places) places {
	var found places
	for _, l := range w.members {
		if (l.all &^ without).count() < l.need {
			found = found.with(l.index)
		}
	}
	return found
}
