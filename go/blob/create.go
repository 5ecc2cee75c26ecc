package blob

import (
	"context"
	"errors"
)

// ErrExists says that there is a blob of that name already.
var ErrExists = errors.New("there is such a blob already")

// Creator is what a Location also implements when it can tell, of several who
// store a blob under one name at once, which was the first.
type Creator interface {
	// Create is Put, except that it returns ErrExists and changes nothing
	// when there is a blob of that name. Looking and storing are one step.
	Create(ctx context.Context, name Name, data []byte) error
}

// Create stores a blob at a location unless there is one of that name, which is
// ErrExists. Where the location is no Creator, somebody who stores one at the same
// moment may go unnoticed.
func Create(ctx context.Context, location Location, name Name, data []byte) error {
	if creator, ok := location.(Creator); ok {
		return creator.Create(ctx, name, data)
	}
	switch _, err := location.Stat(ctx, name); {
	case err == nil:
		return ErrExists
	case !errors.Is(err, ErrNotFound):
		return err
	}
	return location.Put(ctx, name, data)
}

// Looker is what a Creator also implements that creates a blob in one step for somebody who
// has looked for an earlier one.
type Looker interface {
	// CreateAbsent is Create that looks for no earlier blob first, in case that the
	// service doesn't notice it.
	CreateAbsent(ctx context.Context, name Name, data []byte) error
}

// CreateAbsent is Create for somebody who has just seen that there is no such blob.
func CreateAbsent(ctx context.Context, location Location, name Name, data []byte) error {
	if looker, ok := location.(Looker); ok {
		return looker.CreateAbsent(ctx, name, data)
	}
	return Create(ctx, location, name, data)
}
