// Package route is the table of all that can be asked of a node: the server, the
// client, docs/api.md and a test that asks everything as everybody are made from it.
package route

import (
	"net/http"
	"time"

	"powercloud.unidatum.com/go/pki"
)

// State is what a node is doing, and decides what can be asked of it.
type State uint8

// The states. A node in one of them answers no request that is for another.
const (
	// Blank is that of a node that belongs to no cluster.
	Blank State = iota + 1
	// Locked is that of a node whose state volume is encrypted and waits for its key.
	Locked
	// Open is that of a member at work.
	Open
)

// String names the state.
func (s State) String() string {
	switch s {
	case Blank:
		return "blank"
	case Locked:
		return "locked"
	case Open:
		return "open"
	}
	return "no state"
}

// Callers says who may ask. The zero value is nobody.
type Callers uint8

// The callers.
const (
	// Anyone is whoever reaches the node, which has no way yet to tell who is who.
	Anyone Callers = 1 << iota
	// Admins have a certificate with that role, and Nodes with the other.
	Admins
	Nodes
)

// Allow reports whether a role may ask.
func (c Callers) Allow(role pki.Role) bool {
	switch role {
	case pki.RoleAdmin:
		return c&Admins != 0
	case pki.RoleNode:
		return c&Nodes != 0
	}
	return false
}

// String lists the callers.
func (c Callers) String() string {
	switch c {
	case Anyone:
		return "anyone"
	case Admins:
		return "admins"
	case Admins | Nodes:
		return "admins and nodes"
	case Nodes:
		return "nodes"
	}
	return "nobody"
}

// Route is one thing that can be asked.
type Route struct {
	// Name says in a few words what it is.
	Name string
	// Method is GET for what changes nothing, PUT for what may be asked again and does
	// nothing more then, and POST.
	Method, Path string
	// State is the one in which a node answers.
	State   State
	Callers Callers
	// MaxRequest and MaxAnswer are the sizes in bytes that the two messages don't exceed.
	// MaxRequest is 0 if there is nothing to say but the path. The answer to a stream has
	// no bound.
	MaxRequest, MaxAnswer int64
	// Timeout is how long it may take from the request's first byte to the answer's last.
	// That of a stream is for the request alone.
	Timeout time.Duration
	// Stream says that the answer is text that comes bit by bit.
	Stream bool
	// Purpose is a sentence or two for docs/api.md.
	Purpose string
}

// Call is a route with the types of its messages.
type Call[Request, Answer any] struct{ Route }

// Stream is a route whose answer is text that comes bit by bit.
type Stream[Request any] struct{ Route }

// Sizes and times that many routes have. A message that is no document is small.
const (
	small  = 16 << 10
	medium = 256 << 10
	quick  = 10 * time.Second
)

// get returns a route for admins that changes nothing.
func get(name, path, purpose string, maxAnswer int64) Route {
	return Route{Name: name, Method: http.MethodGet, Path: path, State: Open, Callers: Admins,
		MaxAnswer: maxAnswer, Timeout: quick, Purpose: purpose}
}

// change returns a route for admins that changes something.
func change(name, method, path, purpose string, maxRequest int64) Route {
	return Route{Name: name, Method: method, Path: path, State: Open, Callers: Admins,
		MaxRequest: maxRequest, MaxAnswer: small, Timeout: quick, Purpose: purpose}
}
