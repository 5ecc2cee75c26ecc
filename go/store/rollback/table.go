package rollback

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/store/manifest"
)

// Table is all marks of a cluster, for a caller that goes through all manifests. It
// takes 48 bytes for each. A nil Table has none.
type Table struct {
	rows []row
	// errs counts what was found to be rolled back, first is the first of it.
	errs  int
	first error
}

// row is a mark in little memory.
type row struct {
	key     Key
	time    int64
	deleted bool
	seen    bool
}

// All returns every mark. It fails only when the context ends.
func (g *Guard) All(ctx context.Context) (*Table, error) {
	if g == nil {
		return nil, ctx.Err()
	}
	asking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	t := &Table{}
	trust, err := g.marks.Each(asking, func(key Key, mark Mark) error {
		if len(t.rows) == maxMarks {
			return fmt.Errorf("a node records more than %d objects", maxMarks)
		}
		t.rows = append(t.rows, row{key: key, time: mark.Time, deleted: mark.Deleted})
		return mark.check()
	})
	if err != nil {
		return nil, g.failed(ctx, err)
	}
	g.answered(trust)
	slices.SortFunc(t.rows, func(x, y row) int { return bytes.Compare(x.key[:], y.key[:]) })
	return t, nil
}

// Within returns the marks of the manifests whose keys begin with some bytes, for a
// caller that goes through those only.
func (t *Table) Within(start []byte) *Table {
	if t == nil {
		return nil
	}
	from, _ := slices.BinarySearchFunc(t.rows, start, func(r row, start []byte) int { return bytes.Compare(r.key[:], start) })
	within := t.rows[from:]
	to := slices.IndexFunc(within, func(r row) bool { return !bytes.HasPrefix(r.key[:], start) })
	if to >= 0 {
		within = within[:to]
	}
	return &Table{rows: within}
}

// find returns the row of a manifest, or nil.
func (t *Table) find(key Key) *row {
	if t == nil {
		return nil
	}
	i, ok := slices.BinarySearchFunc(t.rows, key, func(r row, key Key) int { return bytes.Compare(r.key[:], key[:]) })
	if !ok {
		return nil
	}
	return &t.rows[i]
}

// Recorded reports whether a manifest has a mark that isn't a removal's.
func (t *Table) Recorded(key Key) bool {
	r := t.find(key)
	return r != nil && !r.deleted
}

// Behind reports whether the newest version of a manifest that was found is older
// than its mark.
func (t *Table) Behind(key Key, found *manifest.Manifest) bool {
	r := t.find(key)
	return r != nil && found != nil && found.Version.Time < r.time
}

// Compare returns an *Error when the newest version of a manifest that was found is
// older than its mark. One that can't be read, found being nil, is another fault.
// It must be called for every manifest that any location lists, by one goroutine at
// a time.
func (t *Table) Compare(key Key, found *manifest.Manifest) error {
	r := t.find(key)
	if r == nil {
		return nil
	}
	r.seen = true
	if found == nil {
		return nil
	}
	err := Compare(found.Name, Mark{r.time, r.deleted}, found)
	t.note(err)
	return err
}

// Hidden calls fn for every object that has a mark and wasn't compared: no location
// lists it.
func (t *Table) Hidden(fn func(Key)) {
	if t == nil {
		return
	}
	for i := range t.rows {
		r := &t.rows[i]
		if r.seen || r.deleted {
			continue
		}
		r.seen = true
		name := blob.Name{Kind: blob.KindManifest, ID: r.key}
		t.note(&Error{Object: fmt.Sprintf("%s (the object's name can't be read)", name), Recorded: Mark{Time: r.time}, Nowhere: true})
		fn(r.key)
	}
}

func (t *Table) note(err error) {
	if err == nil {
		return
	}
	t.errs++
	if t.first == nil {
		t.first = err
	}
}

// Err returns nil when nothing was found to be rolled back, and otherwise an error
// that says of how many objects, and describes one of them.
func (t *Table) Err() error {
	switch {
	case t == nil || t.errs == 0:
		return nil
	case t.errs == 1:
		return t.first
	}
	return fmt.Errorf("%w (and %d others are)", t.first, t.errs-1)
}

// Forget makes the table as if nothing had been compared.
func (t *Table) Forget() {
	if t == nil {
		return
	}
	for i := range t.rows {
		t.rows[i].seen = false
	}
	t.errs, t.first = 0, nil
}
