package ec

import (
	"fmt"
	"slices"

	"powercloud.unidatum.com/go/blob"
)

// state says what is known of what a part holds of a blob.
type state uint8

const (
	// notAsked is a part that has not answered yet.
	notAsked state = iota
	// unreachable is a part that could not answer.
	unreachable
	// absent is a part that answered that it has no such blob.
	absent
	// unusable is a part that answered with something else than shards of the blob.
	unusable
	// tooLarge is a part that has more than the reader accepts.
	tooLarge
	// holding is a part that has records.
	holding
)

// answer is what one part said about a blob.
type answer struct {
	state state
	// err says why, for unreachable and unusable, or what is damaged.
	err     error
	records []record
	// damaged says that the part holds something besides its records that is no shard.
	damaged bool
	// altered are records that were dropped, as their shards have other sums than
	// their headers state.
	altered []record
	// length is that of what the part holds, in bytes.
	length int
}

// has returns the part's record of a version, or nil.
func (a *answer) has(id versionID) *record {
	for i := range a.records {
		if a.records[i].id == id {
			return &a.records[i]
		}
	}
	return nil
}

// version is one version of a blob, with the shards that parts hold of it.
type version struct {
	descriptor
	id versionID
	// parts has the part that holds each shard, by the shard's index, or -1.
	parts []int
	// checked says which of them were compared with their sums.
	checked []bool
	count   int
	// stacked says that some part holds an older version behind this one, which
	// it does until this one is known to outlast a power cut.
	stacked bool
}

// tally is what parts said about a blob, and the versions that they agree on.
//
// A version exists only as far as parts agree on it: its shards have headers that
// are equal but for the index, and each payload has the sum which those headers
// state. So a part that makes up a header is alone with it, and one that keeps to
// the header can't alter its shard.
type tally struct {
	layout
	name     blob.Name
	parts    []blob.Location
	answers  []answer
	versions []*version
}

func newTally(l layout, name blob.Name, parts []blob.Location) *tally {
	return &tally{layout: l, name: name, parts: parts, answers: make([]answer, l.total)}
}

// add enters a part's answer.
func (t *tally) add(part int, a answer) {
	t.answers[part] = a
	for i := range a.records {
		t.enter(part, &a.records[i], i < len(a.records)-1 || a.damaged)
	}
}

// enter enters a record.
func (t *tally) enter(part int, r *record, stacked bool) {
	v := t.version(r.id)
	if v == nil {
		v = &version{descriptor: r.descriptor, id: r.id, parts: make([]int, t.total), checked: make([]bool, t.total)}
		v.sums = slices.Clone(r.sums) // the record's memory may be given back
		for i := range v.parts {
			v.parts[i] = -1
		}
		t.versions = append(t.versions, v)
	}
	v.stacked = v.stacked || stacked
	if other := v.parts[r.index]; other >= 0 {
		// Of two parts that hold one shard, an intact one counts.
		if v.checked[r.index] || t.answers[other].has(r.id).intact() {
			v.checked[r.index] = true
			return
		}
		v.count--
	}
	v.parts[r.index], v.checked[r.index] = part, false
	v.count++
}

func (t *tally) version(id versionID) *version {
	for _, v := range t.versions {
		if v.id == id {
			return v
		}
	}
	return nil
}

// check compares the shards of a version with their sums and drops those that
// differ.
func (t *tally) check(v *version) {
	for index, part := range v.parts {
		if part >= 0 && !v.checked[index] {
			t.checkPart(part, v.id)
		}
	}
}

// checkPart is check for one part's shard.
func (t *tally) checkPart(part int, id versionID) {
	r := t.answers[part].has(id)
	if r == nil {
		return
	}
	if !r.intact() {
		t.drop(part, id)
		return
	}
	if v := t.version(id); v.parts[r.index] == part {
		v.checked[r.index] = true
	}
}

// drop forgets an altered shard. What else its part holds counts as before: it has sums
// of its own.
func (t *tally) drop(part int, id versionID) {
	v := t.version(id)
	for index, holder := range v.parts {
		if holder == part {
			v.parts[index], v.checked[index] = -1, false
			v.count--
		}
	}
	t.answers[part].dropAltered(func(r *record) bool { return r.id == id })
}

// dropAltered drops the records that were altered.
func (a *answer) dropAltered(altered func(*record) bool) {
	if !slices.ContainsFunc(a.records, func(r record) bool { return altered(&r) }) {
		return
	}
	kept := make([]record, 0, len(a.records))
	for i := range a.records {
		if altered(&a.records[i]) {
			a.altered = append(a.altered, a.records[i])
		} else {
			kept = append(kept, a.records[i])
		}
	}
	a.records, a.damaged, a.err = kept, true, fmt.Errorf("its shard was altered: %w", errFormat)
	if len(kept) == 0 {
		a.state, a.records = unusable, nil
	}
}

// quorum is how many shards a write must store.
func (l layout) quorum() int { return l.data + 1 }

// agreement is how many parts have to agree on a version before it is preferred to
// others: one alone says nothing about what the others hold, also where one shard
// is enough to read.
func (l layout) agreement() int { return max(l.data, 2) }

// uncertain counts the parts of which it isn't known which versions they hold.
func (t *tally) uncertain() int {
	n := 0
	for i := range t.answers {
		switch a := &t.answers[i]; {
		case a.state == holding && !a.damaged, a.state == absent:
		default:
			n++
		}
	}
	return n
}

// count counts the parts in a state.
func (t *tally) count(s state) int {
	n := 0
	for i := range t.answers {
		if t.answers[i].state == s {
			n++
		}
	}
	return n
}

// definite counts the parts that answered.
func (t *tally) definite() int { return t.count(absent) + t.count(unusable) + t.count(holding) }

// newest returns the newest version that any part has, or nil.
func (t *tally) newest() *version {
	var newest *version
	for _, v := range t.versions {
		if v.count > 0 && (newest == nil || newer(v.sequence, v.id, newest.sequence, newest.id)) {
			newest = v
		}
	}
	return newest
}

// payloads returns the shards of a version by their index, nil where no part has
// one.
func (t *tally) payloads(v *version) [][]byte {
	payloads := make([][]byte, t.total)
	for index, part := range v.parts {
		if part >= 0 {
			payloads[index] = t.answers[part].has(v.id).payload
		}
	}
	return payloads
}

// possible reports whether a version may have been acknowledged: enough parts have
// it or may have it.
func (t *tally) possible(v *version) bool { return v.count+t.uncertain() >= t.quorum() }

// candidates returns the versions that can be put together, the most credible
// first, and checks them all.
//
// The newest comes first. But one that fewer than two parts vouch for, and that
// could not have been acknowledged, comes after the others: that only happens
// where one shard is enough to read, and keeps a single part from replacing a
// blob for everybody.
func (t *tally) candidates() []*version {
	var found []*version
	for _, v := range t.versions {
		if v.count >= t.data {
			t.check(v)
		}
	}
	for _, v := range t.versions {
		if v.count >= t.data {
			found = append(found, v)
		}
	}
	slices.SortFunc(found, t.compare)
	return found
}

// compare orders versions by credibility, for candidates.
func (t *tally) compare(a, b *version) int {
	credible := func(v *version) bool { return v.count+t.uncertain() >= t.agreement() }
	switch x, y := credible(a), credible(b); {
	case a == b:
		return 0
	case x && !y:
		return -1
	case y && !x:
		return 1
	case a.sequence == b.sequence && a.count != b.count:
		return b.count - a.count
	case newer(a.sequence, a.id, b.sequence, b.id):
		return -1
	}
	return 1
}

// agreed reports whether a version may be spread to parts that lack it, though
// nobody has authenticated it: enough parts agree on it or, where a single one is
// enough to read, all have answered and none contradicts it.
func (t *tally) agreed(v *version) bool {
	if v.count >= t.agreement() {
		return true
	}
	for _, other := range t.versions {
		if other != v && other.count > 0 {
			return false
		}
	}
	return t.definite() == t.total
}

// best returns the most credible version that can be put together, or nil.
func (t *tally) best() *version {
	if found := t.candidates(); len(found) > 0 {
		return found[0]
	}
	return nil
}
