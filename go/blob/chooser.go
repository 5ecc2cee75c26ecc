package blob

import "context"

// Chooser is what a Location also implements when it puts a blob together from
// several answers, which may disagree, and can't always tell which to believe.
type Chooser interface {
	// GetAccepted is Get for a reader that can tell whether a blob is authentic.
	// It offers what may be the blob, the most credible first, until accept
	// returns nil, and otherwise returns accept's first error. accept may change
	// the bytes in place.
	GetAccepted(ctx context.Context, name Name, buf []byte, limit int64, accept func([]byte) error) ([]byte, error)
}

// GetAccepted reads a blob that accept returns nil for. A location that is no
// Chooser has one to offer at most.
func GetAccepted(ctx context.Context, location Location, name Name, buf []byte, limit int64, accept func([]byte) error) ([]byte, error) {
	if chooser, ok := location.(Chooser); ok {
		return chooser.GetAccepted(ctx, name, buf, limit, accept)
	}
	data, err := location.Get(ctx, name, buf, limit)
	if err != nil {
		return nil, err
	}
	if err := accept(data); err != nil {
		return nil, err
	}
	return data, nil
}
