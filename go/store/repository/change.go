package repository

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/quorum"
	"powercloud.unidatum.com/go/keys"
)

// ErrContended means that somebody else changed the key header at the same time.
var ErrContended = errors.New("the key header was changed by somebody else at the same time; run the command again")

// PartialChangeError means that a new key header is in force, and that some
// locations still hold the one before. Repair brings them up to date.
type PartialChangeError struct {
	// Failures names the locations and says why.
	Failures []quorum.Failure
}

func (e *PartialChangeError) Error() string {
	var where []string
	for _, f := range e.Failures {
		where = append(where, fmt.Sprintf("%s: %v", f.Location, f.Err))
	}
	return fmt.Sprintf("some locations still hold the key header of before, which opens with what opened it then; run 'pcctl repair' once they take it (%s)",
		strings.Join(where, "; "))
}

// ChangePassphrase replaces the passphrase by another. The root key and all data
// stay as they are, and so do the recovery keys. It refuses unless every location
// can be reached, as the old passphrase opens a header that is left behind. A
// *PartialChangeError means that the new passphrase is in force all the same.
func (r *Repository) ChangePassphrase(ctx context.Context, passphrase []byte, random io.Reader) error {
	header, err := r.changeable()
	if err != nil {
		return err
	}
	slot, err := header.NewPassphraseSlot(random, r.Root, freeID(header.Slots), passphrase)
	if err != nil {
		return err
	}
	slots := slices.DeleteFunc(slices.Clone(header.Slots), func(s keys.Slot) bool { return s.Kind == keys.SlotPassphrase })
	return r.change(ctx, header, append(slots, slot))
}

// AddRecoveryKey adds a recovery key to those that there are. With a
// *PartialChangeError the key that it also returns is valid.
func (r *Repository) AddRecoveryKey(ctx context.Context, random io.Reader) (keys.RecoveryKey, error) {
	header, err := r.changeable()
	if err != nil {
		return keys.RecoveryKey{}, err
	}
	if len(header.Slots) >= keys.MaxSlots {
		return keys.RecoveryKey{}, fmt.Errorf("there are %d recovery keys already, as many as a key header holds", len(header.Slots)-1)
	}
	slot, recovery, err := header.NewRecoverySlot(random, r.Root, freeID(header.Slots))
	if err != nil {
		return keys.RecoveryKey{}, err
	}
	err = r.change(ctx, header, append(slices.Clone(header.Slots), slot))
	var partial *PartialChangeError
	if err != nil && !errors.As(err, &partial) {
		clear(recovery[:])
	}
	return recovery, err
}

// freeID returns a slot ID that none of the slots has: the one after the highest,
// so that an ID isn't given again to what comes after a slot, unless that was the
// last that there is.
func freeID(slots []keys.Slot) uint8 {
	id := uint8(0)
	for _, s := range slots {
		id = max(id, s.ID)
	}
	for {
		id++
		taken := slices.ContainsFunc(slots, func(s keys.Slot) bool { return s.ID == id })
		if id != 0 && !taken {
			return id
		}
	}
}

// changeable returns the newest key header if a change of it can reach every
// location, and there is one newest.
func (r *Repository) changeable() (*keys.Header, error) {
	if err := r.Conflict(); err != nil {
		return nil, err
	}
	for _, l := range r.Locations {
		if l.State == HeaderForeign || l.State == HeaderUnreachable {
			why := l.Err
			if why == nil {
				why = ErrForeign
			}
			return nil, fmt.Errorf("changing the key header needs every location, and %s can't take it: %w", l, why)
		}
	}
	return keys.ParseHeader(r.Header)
}

// change replaces the key header at every location by one with these slots. It
// goes on past a location that fails: the sooner a new header is everywhere, the
// better, and an interruption at any point leaves the old one or the new one at
// each location, of which the newest is taken by whoever opens either.
func (r *Repository) change(ctx context.Context, header *keys.Header, slots []keys.Slot) error {
	next, err := header.WithSlots(r.Root, slots)
	if err != nil {
		return err
	}
	replacement := next.Marshal()
	for _, l := range r.Locations {
		if err := l.unchanged(ctx); err != nil {
			return err
		}
		if err := blob.ProbeAll(ctx, l.Location); err != nil {
			return fmt.Errorf("changing the key header needs every location: %s: %w", l, err)
		}
	}
	failures := make([]error, len(r.Locations))
	took := 0
	for i, l := range r.Locations {
		// Once it is in one place it should be in all.
		if took > 0 {
			ctx = context.WithoutCancel(ctx)
		}
		failures[i] = l.replaceHeader(ctx, replacement)
		if errors.Is(failures[i], ErrContended) {
			return failures[i]
		}
		if failures[i] == nil {
			took++
		}
	}
	if took == 0 {
		return fmt.Errorf("nothing was changed: %s: %w", r.Locations[0], failures[0])
	}
	r.Header = replacement
	partial := &PartialChangeError{}
	for i, l := range r.Locations {
		if failures[i] == nil {
			l.State, l.Err, l.raw, l.header = HeaderCurrent, nil, replacement, next
			continue
		}
		partial.Failures = append(partial.Failures, quorum.Failure{Location: l.Location, Err: failures[i]})
	}
	if len(partial.Failures) > 0 {
		return partial
	}
	return nil
}

// unchanged returns nil if the location still holds the key header that was read
// from it, or still none.
func (l *Location) unchanged(ctx context.Context) error {
	stored, err := l.Get(ctx, blob.Header(), nil, keys.MaxHeader)
	switch {
	case errors.Is(err, blob.ErrNotFound) && l.State == HeaderMissing, errors.Is(err, blob.ErrTooLarge) && l.State == HeaderDamaged:
		return nil
	case errors.Is(err, blob.ErrNotFound), err == nil && !l.Holds(stored):
		return fmt.Errorf("%s: %w", l, ErrContended)
	case err != nil:
		return fmt.Errorf("changing the key header needs every location: %s: %w", l, err)
	}
	return nil
}

// replaceHeader writes a key header to the location, durably, unless another one
// has appeared there, and makes sure that it is the one that stands there then.
func (l *Location) replaceHeader(ctx context.Context, header []byte) error {
	if err := l.unchanged(ctx); err != nil {
		return err
	}
	if err := l.Put(ctx, blob.Header(), header); err != nil {
		return err
	}
	if err := l.Flush(ctx); err != nil {
		return err
	}
	stored, err := l.Get(ctx, blob.Header(), nil, keys.MaxHeader)
	if err == nil && string(stored) != string(header) {
		return fmt.Errorf("%s: %w", l, ErrContended)
	}
	return err
}
