// Package command holds what pcctl's commands share: the process around them,
// usage errors, and the two ways of printing a result.
package command

import (
	"crypto/rand"
	"fmt"
	"io"
	"time"

	"powercloud.unidatum.com/go/admin/prompt"
)

// Env is what a run of pcctl gets from the process around it. The zero value
// of every field but Args, Stdout and Stderr stands for "none" or for the
// default that its comment names.
type Env struct {
	// Args is the command line, the program's name first.
	Args []string
	// Stdin is what 'put NAME -' reads; nil is empty.
	Stdin io.Reader
	// Stdout takes results, Stderr warnings, errors and progress.
	Stdout, Stderr io.Writer
	// Getenv looks up an environment variable; nil finds none.
	Getenv func(string) string
	// Unsetenv removes a variable from the process's environment, so that no
	// child process inherits a secret; nil removes nothing.
	Unsetenv func(string) error
	// Terminal asks the user for secrets; nil means that there is no terminal.
	Terminal prompt.Terminal
	// ShowProgress draws progress bars on Stderr.
	ShowProgress bool
	// StdoutTerminal says that Stdout is shown on the terminal that the bars
	// are drawn on.
	StdoutTerminal bool
	// Now tells the time; nil is time.Now.
	Now func() time.Time
	// Rand is the source of keys; nil is crypto/rand.Reader.
	Rand io.Reader
	// ConfigDir is the directory for what pcctl keeps on this machine; "" keeps
	// nothing.
	ConfigDir string
	// Zone is the time zone that times are shown in; nil is time.Local.
	Zone *time.Location
}

// WithDefaults returns the environment with every nil field but Terminal
// filled in.
func (e Env) WithDefaults() Env {
	if e.Stdin == nil {
		e.Stdin = eof{}
	}
	if e.Getenv == nil {
		e.Getenv = func(string) string { return "" }
	}
	if e.Unsetenv == nil {
		e.Unsetenv = func(string) error { return nil }
	}
	if e.Now == nil {
		e.Now = time.Now
	}
	if e.Rand == nil {
		e.Rand = rand.Reader
	}
	if e.Zone == nil {
		e.Zone = time.Local
	}
	return e
}

// eof is an empty input.
type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }

// Printf writes to standard output. Its error says where the write failed.
func (e Env) Printf(format string, args ...any) error {
	if _, err := fmt.Fprintf(e.Stdout, format, args...); err != nil {
		return &OutputError{err}
	}
	return nil
}

// OutputError means that a result could not be written to standard output.
type OutputError struct{ Err error }

// Error says where the write failed.
func (e *OutputError) Error() string { return "writing to standard output: " + e.Err.Error() }

// Unwrap returns the error of the write.
func (e *OutputError) Unwrap() error { return e.Err }
