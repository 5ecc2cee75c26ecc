package blob

import "context"

type readOnlyKey struct{}

// ReadOnly returns a context in which a location changes nothing by being read. A
// location that finds a part of its own lacking then leaves it so.
func ReadOnly(ctx context.Context) context.Context {
	return context.WithValue(ctx, readOnlyKey{}, true)
}

// IsReadOnly reports whether reads with this context must change nothing.
func IsReadOnly(ctx context.Context) bool { return ctx.Value(readOnlyKey{}) != nil }
