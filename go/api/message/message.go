// Package message has what the node API's requests and answers say: Go structs that
// are sent as JSON.
//
// Who reads one checks it first. A caller authenticates the node before, and a node
// the caller, but neither is sure to mean well: texts can have anything in them, and
// numbers any size. A member that a reader doesn't know is no error, so that nodes and
// pcctl of different versions understand each other; one that is missing has its zero
// value.
package message
