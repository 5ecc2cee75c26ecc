package ec

import (
	"fmt"
	"strings"

	"powercloud.unidatum.com/go/blob"
)

// PartsError says that too few parts took or served a shard. It never wraps what
// would say that a blob is absent.
type PartsError struct {
	Message string
	// Failures has the parts that failed, in the order in which they were given.
	Failures []blob.PartFailure
}

// Error returns `MESSAGE: PART: why; PART: why`.
func (e *PartsError) Error() string {
	var text strings.Builder
	text.WriteString(e.Message)
	before := ": "
	for _, f := range e.Failures {
		fmt.Fprintf(&text, "%s%s: %v", before, f.Part, f.Err)
		before = "; "
	}
	return text.String()
}

// Unwrap returns every failing part's error.
func (e *PartsError) Unwrap() []error {
	errs := make([]error, len(e.Failures))
	for i, f := range e.Failures {
		errs[i] = f.Err
	}
	return errs
}

// failures pairs the errors that are not nil with their parts.
func (l *Location) failures(message string, errs []error) *PartsError {
	failure := &PartsError{Message: message}
	for i, err := range errs {
		if err != nil {
			failure.Failures = append(failure.Failures, blob.PartFailure{Part: l.parts[i], Err: err})
		}
	}
	return failure
}
