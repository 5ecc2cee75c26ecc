package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"

	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/api/proof"
	"powercloud.unidatum.com/go/api/route"
	"powercloud.unidatum.com/go/pki"
)

// Caller is who asks.
type Caller struct {
	// Identity is what the caller's certificate says; the zero value in a state in which
	// anyone may ask.
	Identity pki.Identity
	// Address is where the caller comes from.
	Address string
	// Proof is what came with the request where anyone may ask.
	Proof Proof
}

// Proof is what a request has with which its sender proves to know a secret.
type Proof struct {
	// Binding belongs to the connection: no other has the same (RFC 8446, section 7.5).
	Binding []byte
	// Path and Body are the request's, as they came.
	Path string
	Body []byte
	// MAC is what the sender made of all that.
	MAC []byte
}

// Knows reports whether the sender knows a code.
func (p Proof) Knows(c *proof.Code) bool { return c.Check(p.MAC, p.Binding, p.Path, p.Body) }

// answer does what a request asks. It returns what is to be written as JSON.
type answer func(ctx context.Context, caller Caller, body []byte) (any, error)

// stream does what a request asks and writes text bit by bit.
type stream func(ctx context.Context, caller Caller, body []byte, w io.Writer) error

// Handlers do what is asked by the routes of one state.
type Handlers struct {
	answers map[string]answer
	streams map[string]stream
}

// NewHandlers returns none.
func NewHandlers() *Handlers {
	return &Handlers{answers: make(map[string]answer), streams: make(map[string]stream)}
}

// Handle has a function do what a call asks.
func Handle[Request, Answer any](h *Handlers, call route.Call[Request, Answer], do func(context.Context, Caller, *Request) (*Answer, error)) {
	h.answers[call.Name] = func(ctx context.Context, caller Caller, body []byte) (any, error) {
		request, err := decode[Request](call.Route, body)
		if err != nil {
			return nil, err
		}
		return do(ctx, caller, request)
	}
}

// HandleStream has a function do what a stream asks. What it writes reaches the caller
// at once.
func HandleStream[Request any](h *Handlers, call route.Stream[Request], do func(context.Context, Caller, *Request, io.Writer) error) {
	h.streams[call.Name] = func(ctx context.Context, caller Caller, body []byte, w io.Writer) error {
		request, err := decode[Request](call.Route, body)
		if err != nil {
			return err
		}
		return do(ctx, caller, request, w)
	}
}

func decode[Request any](r route.Route, body []byte) (*Request, error) {
	request := new(Request)
	if r.MaxRequest == 0 {
		return request, nil
	}
	if err := message.Decode(body, request, true); err != nil {
		return nil, message.Errorf("", "the request can't be read: %v", err)
	}
	return request, nil
}

// check returns an error unless there is a handler for every route of a state, and
// for no other.
func (h *Handlers) check(state route.State) error {
	found := 0
	for _, r := range route.All() {
		if r.State != state {
			continue
		}
		found++
		_, answers := h.answers[r.Name]
		_, streams := h.streams[r.Name]
		if answers == r.Stream || streams != r.Stream {
			return fmt.Errorf("nothing answers to %s", r.Name)
		}
	}
	if found != len(h.answers)+len(h.streams) {
		return fmt.Errorf("there are answers to what isn't asked in the state %s", state)
	}
	return nil
}

// encode returns an answer's bytes. One that is larger than the route says is a fault
// of the node's.
func encode(r route.Route, value any, log *slog.Logger) ([]byte, error) {
	text, err := json.Marshal(value)
	if err == nil && int64(len(text)) > r.MaxAnswer {
		err = fmt.Errorf("it has %d bytes and may have %d", len(text), r.MaxAnswer)
	}
	if err != nil {
		log.Error("an answer could not be written", "route", r.Name, "err", err)
		return nil, message.Errorf("", "the node's answer could not be written")
	}
	return text, nil
}
