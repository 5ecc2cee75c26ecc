package blob

import (
	"context"
	"errors"
)

// Change makes of what Get returned, which is data or one of ErrNotFound, ErrTooLarge and
// ErrDamaged, what is to be stored instead. Nil leaves what is there. It may be called
// several times, and must neither keep data nor use the location.
type Change func(data []byte, err error) (next []byte, changeErr error)

// Amender is what a Location also implements when it can replace a blob on the condition
// that it is still the one that was read.
type Amender interface {
	// Amend reads a blob of at most limit bytes and stores what change makes of it. If
	// others have replaced it meanwhile, it does so again, and returns ErrContended when
	// that has happened several times. It returns change's errors as they are. The next
	// Flush covers the blob, changed or not, as after Stat.
	Amend(ctx context.Context, name Name, limit int64, change Change) error
}

// ErrContended says that others have replaced a blob again and again while it was being
// changed.
var ErrContended = errors.New("others keep writing it at the same time; try again")

// AmendTries is how often a blob is read and changed before that is ErrContended: so
// often that of two who replace one all the time, neither loses every race.
const AmendTries = 16

// Amend changes a blob at a location. Where the location is no Amender, what others
// store between reading and storing is lost.
func Amend(ctx context.Context, location Location, name Name, limit int64, change Change) error {
	if amender, ok := location.(Amender); ok {
		return amender.Amend(ctx, name, limit, change)
	}
	for range AmendTries {
		data, found := location.Get(ctx, name, nil, limit)
		if !Answered(found) {
			return found
		}
		next, err := change(data, found)
		switch {
		case err != nil:
			return err
		case next == nil && found == nil:
			_, err = location.Stat(ctx, name)
			return err
		case next == nil:
			return nil
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

// Superseder is what a Location also implements when it keeps several versions of a blob
// for a while, so that it can do the following better than with Amend.
type Superseder interface {
	// Supersede stores a blob, unless stays says of one of at most limit bytes that is
	// there that it is to stay. Of two that are stored at once, one must stay in the eyes
	// of the other; then it does, whoever comes last. What stays, the next Flush covers.
	// stays must neither keep its argument nor use the location. A blob of more than
	// limit bytes is left as it is; the error is then ErrTooLarge.
	Supersede(ctx context.Context, name Name, limit int64, data []byte, stays func([]byte) bool) error
}

// Supersede stores a blob at a location unless one that is there is to stay; see Superseder.
func Supersede(ctx context.Context, location Location, name Name, limit int64, data []byte, stays func([]byte) bool) error {
	if superseder, ok := location.(Superseder); ok {
		return superseder.Supersede(ctx, name, limit, data, stays)
	}
	return Amend(ctx, location, name, limit, func(there []byte, err error) ([]byte, error) {
		switch {
		case errors.Is(err, ErrTooLarge):
			return nil, err
		case err == nil && stays(there):
			return nil, nil
		}
		return data, nil
	})
}
