package ec

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/quorum"
)

// entry is what the parts say of a blob without reading it.
type entry struct {
	name blob.Name
	// lengths and marks have what each part tells of its shard; a length is
	// negative where a part tells nothing.
	lengths []int64
	marks   []string
	present int
	// failed counts the parts that could not be asked.
	failed int
}

func (l *Location) newEntry(name blob.Name) *entry {
	e := &entry{name: name, lengths: make([]int64, l.total), marks: make([]string, l.total)}
	for i := range e.lengths {
		e.lengths[i] = -1
	}
	return e
}

func (e *entry) add(part int, info blob.Info) {
	if e.lengths[part] < 0 {
		e.lengths[part], e.marks[part] = max(info.Size, 0), info.Mark
		e.present++
	}
}

// mark returns a version mark made of those of the first of the parts that have the
// blob. They are so many that none can be put together of shards which they have no
// new one of.
func (l *Location) mark(e *entry) string { return e.markOf(l.total - l.data + 1) }

// markOf returns a mark made of those of the first n parts that have the blob.
func (e *entry) markOf(n int) string {
	h := sha256.New()
	for part, length := range e.lengths {
		if length >= 0 && n > 0 {
			fmt.Fprintf(h, "%d:%d:%s", part, len(e.marks[part]), e.marks[part])
			n--
		}
	}
	const size = 18
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:size])
}

// List lists the blobs of a kind; see blob.Location. What fewer than K parts list
// was left by a write that was never acknowledged, and is passed over: see
// ListTemporary. But such chunks are listed, without a size, so that whoever knows
// which chunks are in use can tell whether one was lost. Parts that can't be listed
// make it fail when that leaves it open whether there is a blob.
func (l *Location) List(ctx context.Context, kind blob.Kind, fn func(blob.Info) error) error {
	if err := blob.CheckCall(ctx, blob.Name{Kind: kind}); err != nil {
		return err
	}
	if kind == blob.KindHeader {
		info, err := l.Stat(ctx, blob.Header())
		if errors.Is(err, blob.ErrNotFound) {
			return nil
		}
		if errors.Is(err, blob.ErrDamaged) {
			info, err = blob.Info{Name: blob.Header(), Size: blob.SizeUnknown, Mark: "damaged"}, nil
		}
		if err != nil {
			return err
		}
		return fn(info)
	}
	open := 0
	errs, err := l.walk(ctx, kind, func(e *entry) error {
		switch size, exists, err := l.listed(ctx, e); {
		case err != nil:
			return err
		case exists:
			return fn(blob.Info{Name: e.name, Size: size, Mark: l.mark(e)})
		case e.present+e.failed >= l.quorum():
			open++
		}
		return nil
	})
	if err != nil {
		return err
	}
	if failed := l.total - countNil(errs); failed >= l.quorum() || failed > l.total-l.data {
		return l.failures(fmt.Sprintf("%d/%d parts can be listed", l.total-failed, l.total), errs)
	}
	if open > 0 {
		return l.failures(fmt.Sprintf("of %d blobs too few shards are at the parts that can be listed", open), errs)
	}
	return nil
}

// listed reports whether a blob that parts list exists, and its size as far as
// that is known.
func (l *Location) listed(ctx context.Context, e *entry) (size int64, exists bool, err error) {
	if e.name.Kind != blob.KindChunk {
		return blob.SizeUnknown, e.present >= l.data, nil
	}
	if e.present < l.data {
		return blob.SizeUnknown, e.failed == 0 || e.present+e.failed < l.quorum(), nil
	}
	size, agree, ok := l.sizeFromLengths(e.lengths)
	switch {
	case agree < l.data:
		return blob.SizeUnknown, true, nil
	case ok:
		return size, true, nil
	}
	size, err = l.sizeByReading(ctx, e.name)
	switch {
	case err == nil:
		return size, true, nil
	case ctx.Err() != nil:
		return 0, false, ctx.Err()
	}
	return blob.SizeUnknown, true, nil
}

// sizeByReading returns a blob's size once enough shards were read.
func (l *Location) sizeByReading(ctx context.Context, name blob.Name) (int64, error) {
	for try := 1; ; try++ {
		t, release, err := l.gather(ctx, name, maxSize, l.everything())
		if err != nil {
			return 0, err
		}
		best := t.best()
		release()
		if best == nil {
			err = t.verdict()
		} else if err = t.doubt(best); err == nil {
			return best.size, nil
		}
		if try == readTries || !t.mayChange() {
			return 0, err
		}
	}
}

// walk calls fn for every blob of a kind that any part lists, in ascending order of
// their IDs. It returns the errors of the parts that can't be listed.
func (l *Location) walk(ctx context.Context, kind blob.Kind, fn func(*entry) error) ([]error, error) {
	return l.set.ListEach(ctx, kind, nil, func(group quorum.Group) error {
		failed := 0
		for i, listed := range group.Listed {
			slices.SortFunc(listed, func(a, b blob.Info) int { return bytes.Compare(a.Name.ID[:], b.Name.ID[:]) })
			if group.Failed[i] != nil {
				failed++
			}
		}
		if l.total-failed < l.data {
			return nil // List fails in the end.
		}
		for {
			e := l.nextEntry(group.Listed)
			if e == nil {
				return nil
			}
			e.failed = failed
			if err := fn(e); err != nil {
				return err
			}
		}
	})
}

// nextEntry takes the blob with the lowest ID off sorted listings.
func (l *Location) nextEntry(listed [][]blob.Info) *entry {
	var lowest *blob.Info
	for _, infos := range listed {
		if len(infos) > 0 && (lowest == nil || bytes.Compare(infos[0].Name.ID[:], lowest.Name.ID[:]) < 0) {
			lowest = &infos[0]
		}
	}
	if lowest == nil {
		return nil
	}
	e := l.newEntry(lowest.Name)
	for part := range listed {
		for len(listed[part]) > 0 && listed[part][0].Name == e.name {
			e.add(part, listed[part][0])
			listed[part] = listed[part][1:]
		}
	}
	return e
}

// Stat describes a blob; see blob.Location.
func (l *Location) Stat(ctx context.Context, name blob.Name) (blob.Info, error) {
	if err := blob.CheckCall(ctx, name); err != nil {
		return blob.Info{}, err
	}
	infos := make([]blob.Info, l.total)
	errs := l.each(func(i int, part blob.Location) (err error) {
		infos[i], err = part.Stat(ctx, name)
		return err
	})
	if err := ctx.Err(); err != nil {
		return blob.Info{}, err
	}
	e := l.newEntry(name)
	for i, err := range errs {
		switch {
		case err == nil:
			e.add(i, infos[i])
		case !blob.Answered(err):
			e.failed++
		}
	}
	if e.present == 0 && e.failed == 0 {
		return blob.Info{}, blob.ErrNotFound
	}
	info := blob.Info{Name: name, Mark: l.mark(e)}
	if name.Kind == blob.KindChunk {
		if size, agree, ok := l.sizeFromLengths(e.lengths); ok && agree >= l.data {
			info.Size = size
			return info, nil
		}
	}
	var err error
	if info.Size, err = l.sizeByReading(ctx, name); err != nil {
		return blob.Info{}, err
	}
	return info, nil
}
