package blob

import "context"

// Chooser is what a Location also implements when its first answer needn't be the
// last word: when it puts a blob together from several, which may disagree, or when
// one can have been altered on the way.
type Chooser interface {
	// GetAccepted is Get for a reader that can tell whether a blob is authentic.
	// It offers what may be the blob, the most credible first, until accept
	// returns nil, and otherwise returns one of accept's errors, or why another
	// answer could not be had. accept may change the bytes in place.
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
