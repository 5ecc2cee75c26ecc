package blob

import (
	"context"
	"errors"
)

// Change makes of what Get returned, which is data or one of ErrNotFound, ErrTooLarge and
// ErrDamaged, what is to be stored instead. Nil leaves what is there. It may be called
// several times, and must not keep data.
type Change func(data []byte, err error) (next []byte, changeErr error)

// Amender is what a Location also implements when it can replace a blob on the condition
// that it is still the one that was read.
type Amender interface {
	// Amend reads a blob of at most limit bytes and stores what change makes of it. If
	// others have replaced it meanwhile, it does so again, and returns ErrContended when
	// that has happened several times. It returns change's errors as they are.
	Amend(ctx context.Context, name Name, limit int64, change Change) error
}

// ErrContended says that others have replaced a blob again and again while it was being
// changed.
var ErrContended = errors.New("others keep changing it at the same time")

// AmendTries is how often a blob is read and changed before that is ErrContended.
const AmendTries = 5

// Amend changes a blob at a location. Where the location is no Amender, what others
// store between reading and storing is lost.
func Amend(ctx context.Context, location Location, name Name, limit int64, change Change) error {
	if amender, ok := location.(Amender); ok {
		return amender.Amend(ctx, name, limit, change)
	}
	for range AmendTries {
		data, found := location.Get(ctx, name, nil, limit)
		if found != nil && !Amendable(found) {
			return found
		}
		next, err := change(data, found)
		switch {
		case err != nil || next == nil:
			return err
		case errors.Is(found, ErrNotFound):
			err = Create(ctx, location, name, next)
		default:
			err = location.Put(ctx, name, next)
		}
		if !errors.Is(err, ErrExists) {
			return err
		}
	}
	return ErrContended
}

// Amendable reports whether an error of Get says what there is, so that a Change gets it.
func Amendable(err error) bool {
	return errors.Is(err, ErrNotFound) || errors.Is(err, ErrTooLarge) || errors.Is(err, ErrDamaged)
}
