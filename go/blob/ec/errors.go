package ec

import (
	"powercloud.unidatum.com/go/blob"
)

// PartsError says that too few parts took or served a shard. It never wraps what
// would say that a blob is absent.
type PartsError struct {
	Message string
	// Failures has the parts that failed, in the order in which they were given.
	Failures blob.Failures
}

// Error returns `MESSAGE: PART: why; PART: why`.
func (e *PartsError) Error() string {
	if len(e.Failures) == 0 {
		return e.Message
	}
	return e.Message + ": " + e.Failures.Text()
}

// Unwrap returns every failing part's error.
func (e *PartsError) Unwrap() []error { return e.Failures.Errors() }

// failures says why parts failed.
func (l *Location) failures(message string, errs []error) *PartsError {
	return &PartsError{message, blob.FailuresOf(l.parts, errs)}
}
