package blob

import "strings"

// Failure is one location's reason for not taking a write or serving a read.
type Failure struct {
	Location Location
	Err      error
}

// Failures are those of several locations, in the locations' order.
type Failures []Failure

// FailuresOf pairs the errors that are not nil with their locations.
func FailuresOf(locations []Location, errs []error) Failures {
	var failures Failures
	for i, err := range errs {
		if err != nil {
			failures = append(failures, Failure{locations[i], err})
		}
	}
	return failures
}

// Text returns `LOC: why; LOC: why`, or nothing if there are none.
func (f Failures) Text() string {
	var text strings.Builder
	for i, failure := range f {
		if i > 0 {
			text.WriteString("; ")
		}
		text.WriteString(failure.Location.String())
		text.WriteString(": ")
		text.WriteString(failure.Err.Error())
	}
	return text.String()
}

// Errors returns every location's error.
func (f Failures) Errors() []error {
	errs := make([]error, len(f))
	for i, failure := range f {
		errs[i] = failure.Err
	}
	return errs
}
