package quorum

import (
	"fmt"

	"powercloud.unidatum.com/go/blob"
)

// Failure is one location's reason for not taking a write or serving a read.
type Failure = blob.Failure

// WriteError says that fewer locations took a write than the quorum asks for.
// The blob is then stored at some of them or none, and a later write or repair
// settles which.
type WriteError struct {
	// Succeeded of Total locations took it, Need would have been enough.
	Succeeded, Total, Need int
	// Failures has the others, in the locations' order.
	Failures blob.Failures
}

// Error returns `N/M backends succeeded, need Q: LOC: why; LOC: why`.
func (e *WriteError) Error() string {
	return fmt.Sprintf("%d/%d backends succeeded, need %d%s", e.Succeeded, e.Total, e.Need, why(e.Failures))
}

// Unwrap returns every location's error.
func (e *WriteError) Unwrap() []error { return e.Failures.Errors() }

// ReadError says that no location served an intact copy of a blob, and that at
// least one of them failed to: the blob may exist there. It is never an
// ErrNotFound.
type ReadError struct {
	Name blob.Name
	// Absent is how many locations answered that they have no such blob.
	Absent int
	// Failures has the others, in the locations' order.
	Failures blob.Failures
}

// Error names every location that failed, and why.
func (e *ReadError) Error() string {
	absent := ""
	if e.Absent > 0 {
		absent = fmt.Sprintf(" (%d without a copy)", e.Absent)
	}
	return fmt.Sprintf("no intact copy of %s at %d locations%s%s", e.Name, e.Absent+len(e.Failures), absent, why(e.Failures))
}

// Unwrap returns every failing location's error.
func (e *ReadError) Unwrap() []error { return e.Failures.Errors() }

// why returns what an error goes on with to say why it came about.
func why(failures blob.Failures) string {
	if len(failures) == 0 {
		return ""
	}
	return ": " + failures.Text()
}
