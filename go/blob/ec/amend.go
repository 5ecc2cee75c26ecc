package ec

import (
	"context"
	"errors"
	"slices"

	"powercloud.unidatum.com/go/blob"
)

// change makes of what a part holds what it is to hold instead, or reports that it is
// fine as it is. It gets the records only that are intact.
type change func(a *answer) (records []record, ok bool, err error)

// amend changes what a part holds of a blob that can have several versions. The part is
// looked at again, whatever was known of it, unless that was that it has nothing: others,
// of whom this process knows nothing, may be replacing the blob too, and what they have
// put there since must stay.
//
// seen is what is known of the part, or nil; weight is what the new records take in
// memory beyond what they were made of, in bytes.
func (l *Location) amend(ctx context.Context, part int, name blob.Name, seen *answer, weight int64, amended change) error {
	if seen != nil && seen.state == absent {
		err := l.create(ctx, part, name, weight, amended)
		if !errors.Is(err, blob.ErrExists) {
			return err
		}
	}
	err := l.amendUpTo(ctx, part, name, inspectLimit, weight, amended)
	if errors.Is(err, blob.ErrTooLarge) {
		err = l.amendUpTo(ctx, part, name, maxSize, largeMemory, amended)
	}
	return err
}

// create has a part that holds nothing hold something.
func (l *Location) create(ctx context.Context, part int, name blob.Name, weight int64, amended change) error {
	release, err := l.reserve(ctx, weight)
	if err != nil {
		return err
	}
	defer release()
	records, ok, err := amended(&answer{state: absent})
	if err != nil || !ok || len(records) == 0 {
		return err
	}
	return blob.CreateAbsent(ctx, l.parts[part], name, joinRecords(records))
}

// amendUpTo is amend for a part that holds no more than blobs of limit bytes.
func (l *Location) amendUpTo(ctx context.Context, part int, name blob.Name, limit, weight int64, amended change) error {
	release, err := l.reserve(ctx, weight)
	if err != nil {
		return err
	}
	defer release()
	empties := false
	err = blob.Amend(ctx, l.parts[part], name, l.partLimit(limit), func(data []byte, err error) ([]byte, error) {
		if errors.Is(err, blob.ErrTooLarge) {
			return nil, err
		}
		a := l.answerOf(name, data, err)
		a.dropAltered(func(r *record) bool { return !r.intact() })
		records, ok, err := amended(&a)
		empties = err == nil && ok && len(records) == 0
		if err != nil || !ok || empties {
			return nil, err
		}
		return joinRecords(records), nil
	})
	if err == nil && empties {
		return l.parts[part].Delete(ctx, name)
	}
	return err
}

// reserve waits until so many bytes of memory may be taken. The function that it
// returns gives them back.
func (l *Location) reserve(ctx context.Context, weight int64) (release func(), err error) {
	if weight = min(weight, largeMemory); weight <= 0 {
		return func() {}, nil
	}
	if err := l.memory.Acquire(ctx, weight); err != nil {
		return nil, err
	}
	return func() { l.memory.Release(weight) }, nil
}

// joinRecords returns what a part stores for these records.
func joinRecords(records []record) []byte {
	if len(records) == 1 {
		return records[0].raw
	}
	records = slices.Clone(records)
	slices.SortFunc(records, func(a, b record) int {
		if newer(a.sequence, a.id, b.sequence, b.id) {
			return -1
		}
		return 1
	})
	var joined []byte
	for i := range records {
		joined = append(joined, records[i].raw...)
	}
	return joined
}
