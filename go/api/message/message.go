// Package message has what admins, nodes and pcctl say to a node's API and what it
// answers, as JSON.
//
// A node refuses a request with members that it doesn't know, and so never does half
// of what was asked. Answers may gain members: whoever reads one ignores what it
// doesn't know, and takes one that is missing for its zero value. Neither side is sure
// to mean well: texts can have anything in them, and numbers any size.
package message

import (
	"errors"
	"fmt"
)

// None is a request or an answer without content.
type None struct{}

// Codes of errors that a program tells apart. Every other error is only for people to
// read.
const (
	// CodeBusy says that the node does as much as it can, or just the same; it may be
	// asked again.
	CodeBusy = "busy"
	// CodeDenied says that the caller's role doesn't allow this.
	CodeDenied = "denied"
	// CodeEnrolled says that the node is in a cluster already.
	CodeEnrolled = "enrolled"
	// CodeNotFound says that nodes of this version know no such request.
	CodeNotFound = "not found"
	// CodeOlder says that the node has a newer document.
	CodeOlder = "older"
	// CodeProof says that the request doesn't prove that its sender knows the code.
	CodeProof = "proof"
	// CodeState says that nodes don't do this in the state that the node is in.
	CodeState = "state"
	// CodeUnlock says that the key doesn't open the volume.
	CodeUnlock = "unlock"
)

// Error is the answer to a request that failed.
type Error struct {
	// Code tells errors apart; empty for one that no program needs to know.
	Code string `json:"code,omitempty"`
	// Text says in one line what is wrong.
	Text string `json:"error"`
}

// Error returns the text.
func (e *Error) Error() string { return e.Text }

// Errorf makes an error with a code.
func Errorf(code, format string, args ...any) *Error {
	return &Error{Code: code, Text: fmt.Sprintf(format, args...)}
}

// HasCode reports whether an error is, or wraps, an Error with a code.
func HasCode(err error, code string) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}
