package model

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
)

// places is a set of locations, a bit for each.
type places uint

func only(i int) places                { return 1 << i }
func (p places) has(i int) bool        { return p&only(i) != 0 }
func (p places) with(i int) places     { return p | only(i) }
func placeName(i int) string           { return string(rune('A' + i)) }
func (p places) minus(o places) places { return p &^ o }

func (p places) count() int {
	n := 0
	for ; p != 0; p &= p - 1 {
		n++
	}
	return n
}

// String returns the locations' letters.
func (p places) String() string {
	var b strings.Builder
	for i := 0; p>>i != 0; i++ {
		if p.has(i) {
			b.WriteString(placeName(i))
		}
	}
	if p == 0 {
		return "none"
	}
	return b.String()
}

// faultKind is what is wrong with a location until it is healed.
type faultKind int

// The faults; those from altered on are lies.
const (
	sound faultKind = iota
	down
	flaky
	full
	deaf // It does what it is told, and its answer is lost.
	stalledFault
	altered
	truncated
	swapped
	outdated
	hiding
	dropping
	inventing
	unordered
	forging // It makes up a newer version, which only a part can.
	faultKinds
)

var faultWords = [...]string{
	"sound", "down", "flaky", "full", "deaf", "stalled",
	"altered", "truncated", "swapped", "outdated", "hiding", "dropping", "inventing", "unordered", "forging",
}

func (k faultKind) String() string { return faultWords[k] }

// lie reports whether the location answers, and not the truth.
func (k faultKind) lie() bool { return k >= altered }

// harmKind is something that happens to what a location holds.
type harmKind int

// The harms.
const (
	powerCut harmKind = iota
	wiped
	restored // from the last snapshot
	rotten
	harmKinds
)

var harmWords = [...]string{"power cut", "wiped", "restored", "rotten"}

func (k harmKind) String() string { return harmWords[k] }

var (
	errDown  = errors.New("it is down")
	errSpace = errors.New("no space left")
	errPower = errors.New("it lost power and what was not flushed")
	errDead  = errors.New("the process is dead")
)

// place is a location, or a part of one: what it holds and what is wrong with it. Only the goroutine
// that runs the script touches it.
type place struct {
	index  int
	memory *blobtest.Memory
	// member is the location that it is, or is a part of.
	member *member
	others []*place
	model  *model

	fault faultKind
	salt  uint64
	calls map[callKey]uint64

	// unsynced has what a power cut brings back: of each name that was written
	// and not flushed since, the blob before, or nil.
	unsynced map[blob.Name]*unsynced
	handles  []*handle
	// past has a former content of each blob that was overwritten.
	past map[blob.Name][]byte

	scratch []byte

	empty, saved func()
	savedRotten  bool

	// harmed is when it last lost something that it had acknowledged.
	harmed int
	// rotten is set while it may hold corrupt blobs.
	rotten bool
	// deceives is set once it may have shown something old.
	deceives bool
}

type callKey struct {
	op   blobtest.Op
	name blob.Name
}

type unsynced struct {
	before []byte
	// by are the clients whose next flush makes the change last.
	by map[*handle]bool
}

func newPlace(index int, l *member, m *model) *place {
	p := &place{index: index, memory: blobtest.NewMemory(placeName(index)), member: l, model: m,
		calls: map[callKey]uint64{}, unsynced: map[blob.Name]*unsynced{}, past: map[blob.Name][]byte{}, harmed: -1}
	p.empty = p.memory.Snapshot()
	p.saved = p.empty
	return p
}

// content returns what is stored under a name, or nil.
func (p *place) content(name blob.Name) []byte { return bytes.Clone(p.peek(name)) }

// peek is content that is good until the next call.
func (p *place) peek(name blob.Name) []byte {
	data, err := p.memory.Get(context.Background(), name, p.scratch, 1<<40)
	if err != nil {
		return nil
	}
	p.scratch = data
	return data
}

// durable returns what a power cut would leave under a name, at worst.
func (p *place) durable(name blob.Name) []byte {
	if u := p.unsynced[name]; u != nil {
		return u.before
	}
	return p.peek(name)
}

// names returns the blobs of a kind, sorted.
func (p *place) names(kind blob.Kind) []blob.Name {
	var names []blob.Name
	_ = p.memory.List(context.Background(), kind, func(info blob.Info) error {
		names = append(names, info.Name)
		return nil
	})
	slices.SortFunc(names, func(a, b blob.Name) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return names
}

// misbehave brings a fault about.
func (p *place) misbehave(kind faultKind, salt uint64) {
	p.fault, p.salt = kind, salt
	p.deceives = p.deceives || kind.lie()
	clear(p.calls)
}

// suffer does a harm to the location at a moment.
func (p *place) suffer(kind harmKind, salt uint64, now int) {
	switch kind {
	case powerCut:
		p.cutPower(salt)
		return
	case wiped:
		p.empty()
		p.rotten = false
	case restored:
		p.saved()
		p.rotten, p.deceives = p.savedRotten, true
	case rotten:
		p.rot(salt)
		p.rotten = true
	}
	p.harmed = now
	clear(p.unsynced)
}

func (p *place) save() {
	p.saved, p.savedRotten = p.memory.Snapshot(), p.rotten
}

// cutPower takes back some of what wasn't flushed, and has those who had not
// flushed it learn of it.
func (p *place) cutPower(salt uint64) {
	for name, u := range p.unsynced {
		if mix(salt, uint64(name.ID[0]), uint64(name.ID[1]))%3 == 0 {
			continue
		}
		var err error
		if u.before == nil {
			err = p.memory.Delete(context.Background(), name)
		} else {
			err = p.memory.Put(context.Background(), name, u.before)
		}
		if err != nil {
			panic(err)
		}
	}
	clear(p.unsynced)
	for _, h := range p.handles {
		h.broken = h.broken || h.dirty
	}
}

// rot turns a bit in some blobs, or cuts them short.
func (p *place) rot(salt uint64) {
	p.memory.Alter(func(name blob.Name, data []byte) []byte {
		switch mix(salt, uint64(name.Kind), uint64(name.ID[0])) % 6 {
		case 0, 1:
			return flip(data)
		case 2:
			return data[:len(data)-1]
		}
		return data
	})
}

func flip(data []byte) []byte {
	if len(data) > 0 {
		data[len(data)-1] ^= 1
	}
	return data
}

// mix is a hash of numbers.
func mix(numbers ...uint64) uint64 {
	h := uint64(14695981039346656037)
	for _, n := range numbers {
		h = (h ^ n) * 1099511628211
		h ^= h >> 29
		h *= 0xbf58476d1ce4e5b9
		h ^= h >> 32
	}
	return h
}

// has reports whether there is anything under a name.
func (p *place) has(name blob.Name) bool { return p.mark(name) != "" }

// mark returns a mark of what is under a name, or "" if there is nothing.
func (p *place) mark(name blob.Name) string {
	info, err := p.memory.Stat(context.Background(), name)
	if err != nil {
		return ""
	}
	return info.Mark
}
