// Package reference writes docs/api.md from the table of routes.
package reference

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/api/proof"
	"powercloud.unidatum.com/go/api/route"
	"powercloud.unidatum.com/go/api/server"
	"powercloud.unidatum.com/go/cluster/address"
)

// head is the page's beginning. Its arguments are the API's port, the header of a proof,
// and how often a stream's caller is looked at again.
const head = `<!-- Made from the table in go/api/route. To change it, change that, and run
     go test ./go/api/reference -write -->
# The node API

Everything that can be asked of a node, and who may. ` + "`pcctl`" + ` is the program that asks; [Nodes](nodes.md) is for people.

A node answers over HTTP/1.1 in TLS 1.3, on TCP port %[1]d if it isn't told otherwise. Requests and answers are JSON. The package ` + "`go/api/message`" + ` has every message, member by member.

- **Requests are read strictly.** One with a member that the node doesn't know is refused as a whole. Whoever reads an answer ignores members that it doesn't know.
- **What a node does decides what it answers.** It is blank, locked or open. While it is open, it asks every caller for a certificate of its cluster's authority, and looks at the role, the end and the revocation of it at every request. A blank or locked node has no certificate of its cluster's yet: the caller knows the node's key by the code on its console.
- **Enrollment takes a proof** in the header ` + "`%[2]s`" + `: a MAC over the request and the TLS connection, under a key that follows from the secret in the code. ` + "`go/api/proof`" + ` documents every byte.
- **GET** changes nothing, and **PUT** may be sent again without harm.
- **Sizes** are what a message has at most, **time** is what a request may take from its first byte to the last of its answer. A log has no end: there, it is the time for the request.
- **A stream ends with the caller's certificate.** The node looks at that again before it sends a piece, and every %[3]s while there is nothing to send. If the certificate has expired or was revoked by then, the connection ends.
`

// states are the headings of the page, in a node's order.
func states() []route.State { return []route.State{route.Blank, route.Locked, route.Open} }

// about says what a state is.
func about(s route.State) string {
	switch s {
	case route.Blank:
		return "The node belongs to no cluster, and waits to be enrolled."
	case route.Locked:
		return "The node was restarted, and its state volume waits for its key."
	case route.Open:
		return "The node is a member of a cluster, at work."
	}
	return ""
}

// problem is a kind of error.
type problem struct {
	code    string
	status  int
	meaning string
}

// problems are the errors that programs tell apart, and the others.
func problems() []problem {
	return []problem{
		{message.CodeBusy, http.StatusServiceUnavailable, "The node does as much as it can, or just the same (then with status 409). Ask again."},
		{message.CodeDenied, http.StatusForbidden, "The caller's certificate isn't valid any more, or its role doesn't allow this."},
		{message.CodeEnrolled, http.StatusConflict, "The node is in a cluster already."},
		{message.CodeNotFound, http.StatusNotFound, "Nodes of this version don't know the request."},
		{message.CodeOlder, http.StatusConflict, "The node has a newer document."},
		{message.CodeProof, http.StatusConflict, "The request doesn't prove that its sender knows the code. One whose proof can't be read has status 400."},
		{message.CodeState, http.StatusConflict, "Nodes don't do this in the state that the node is in."},
		{message.CodeUnlock, http.StatusConflict, "The key doesn't open the volume."},
		{"", http.StatusBadRequest, "The request could not be read."},
		{"", http.StatusConflict, "The request makes no sense, as the text says."},
		{"", http.StatusRequestEntityTooLarge, "The request is too large."},
		{"", http.StatusInternalServerError, "The node failed. Only admins, and callers of a node that isn't open, are told by what."},
	}
}

// Text returns the page.
func Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, head, address.APIPort, http.CanonicalHeaderKey(proof.Header), duration(server.DefaultLimits().Recheck))
	for _, s := range states() {
		fmt.Fprintf(&b, "\n## While it is %s\n\n%s\n\n", s, about(s))
		b.WriteString("| request | callers | request | answer | time | what it does |\n| --- | --- | --- | --- | --- | --- |\n")
		for _, r := range route.All() {
			if r.State == s {
				fmt.Fprintf(&b, "| `%s %s` | %s | %s | %s | %s | %s |\n", r.Method, r.Path, r.Callers,
					size(r.MaxRequest), answer(r), duration(r.Timeout), r.Purpose)
			}
		}
	}
	b.WriteString("\n## Errors\n\nAn error is a JSON object with the `error` as a line of text, and perhaps a `code` for programs. " +
		"A connection without a valid certificate of the cluster's ends in the TLS handshake, with an alert.\n\n")
	b.WriteString("| code | HTTP status | what it means |\n| --- | --- | --- |\n")
	for _, p := range problems() {
		code := "none"
		if p.code != "" {
			code = "`" + p.code + "`"
		}
		fmt.Fprintf(&b, "| %s | %d | %s |\n", code, p.status, p.meaning)
	}
	return b.String()
}

// answer is the size of a route's answer.
func answer(r route.Route) string {
	if r.Stream {
		return "a stream"
	}
	return size(r.MaxAnswer)
}

// size writes a number of bytes.
func size(n int64) string {
	switch {
	case n == 0:
		return "none"
	case n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

// duration writes a time in whole minutes or seconds.
func duration(d time.Duration) string {
	if d%time.Minute == 0 {
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%d s", d/time.Second)
}
