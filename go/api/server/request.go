package server

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/api/proof"
	"powercloud.unidatum.com/go/api/route"
	"powercloud.unidatum.com/go/pki"
)

// closedState is that of a connection that never got to the HTTP server.
const closedState = http.StateClosed

// refusal is an answer that is an error.
type refusal struct {
	status int
	err    *message.Error
}

func refuse(status int, code, text string) *refusal {
	return &refusal{status, &message.Error{Code: code, Text: text}}
}

// serve answers one request.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	c, _ := r.Context().Value(connectionKey{}).(*connection)
	if c == nil {
		// It was pushed out at this moment.
		panic(http.ErrAbortHandler)
	}
	if c.mode.Identify == nil {
		// The next request may well be to another state, and a place is worth more.
		w.Header().Set("Connection", "close")
	}
	if refused := s.try(w, r, c); refused != nil {
		write(w, refused)
	}
}

// write writes an error.
func write(w http.ResponseWriter, refused *refusal) {
	w.Header().Set("Content-Type", "application/json")
	// What is left of the request isn't worth reading.
	w.Header().Set("Connection", "close")
	w.WriteHeader(refused.status)
	// The caller can have gone.
	_ = json.NewEncoder(w).Encode(refused.err)
}

// try answers a request, or says why not.
func (s *Server) try(w http.ResponseWriter, r *http.Request, c *connection) *refusal {
	state := c.tls.ConnectionState()
	identity, err := c.mode.identify(&state)
	if err != nil {
		return refuse(http.StatusForbidden, message.CodeDenied, err.Error())
	}
	asked, refused := s.find(r, c.mode, identity)
	if refused != nil {
		return refused
	}
	who := Network(c.tls.RemoteAddr().String())
	if c.mode.Identify != nil {
		who = string(identity.Key)
	}
	if !s.turns.take(who) {
		return refuse(http.StatusServiceUnavailable, message.CodeBusy, "the node has too many requests to answer; try again")
	}
	defer s.turns.give(who)

	control := http.NewResponseController(w)
	deadline := time.Now().Add(asked.Timeout)
	if err := errors.Join(control.SetReadDeadline(deadline), control.SetWriteDeadline(deadline)); err != nil {
		return refuse(http.StatusInternalServerError, "", "the connection failed")
	}
	ctx, cancel := context.WithCancel(r.Context())
	if !asked.Stream {
		ctx, cancel = context.WithDeadline(r.Context(), deadline)
	}
	defer cancel()

	body, refused := read(w, r, asked)
	if refused != nil {
		return refused
	}
	defer clear(body)
	caller := Caller{Identity: identity, Address: r.RemoteAddr, Proof: Proof{Path: asked.Path, Body: body}}
	if c.mode.Identify == nil {
		caller.Proof.MAC, err = hex.DecodeString(r.Header.Get(proof.Header))
		if err == nil {
			caller.Proof.Binding, err = proof.Binding(&state)
		}
		if err != nil {
			return refuse(http.StatusBadRequest, message.CodeProof, "the request's proof can't be read")
		}
	}
	if asked.Stream {
		// Nothing more comes from the caller. Without this the connection would be taken
		// for one that is too slow, once the time for the request is over.
		if err := control.SetReadDeadline(time.Time{}); err != nil {
			return refuse(http.StatusInternalServerError, "", "the connection failed")
		}
		return s.stream(ctx, &pieces{w: w, control: control, pause: s.limits.Pause}, asked, c.mode, caller, body)
	}
	return s.answer(ctx, w, asked, c.mode, caller, body)
}

// find returns the route that a request asks for, if the caller may.
func (s *Server) find(r *http.Request, mode *Mode, identity pki.Identity) (route.Route, *refusal) {
	for _, candidate := range route.All() {
		if candidate.Method != r.Method || candidate.Path != r.URL.Path {
			continue
		}
		// A connection of before may not ask what the node no longer does, either.
		if candidate.State != mode.State || mode != s.current() {
			return route.Route{}, refuse(http.StatusConflict, message.CodeState, "the node is "+s.current().State.String())
		}
		if candidate.Callers != route.Anyone && !candidate.Callers.Allow(identity.Role) {
			return route.Route{}, refuse(http.StatusForbidden, message.CodeDenied, "this is for "+candidate.Callers.String())
		}
		return candidate, nil
	}
	return route.Route{}, refuse(http.StatusNotFound, message.CodeNotFound, "nodes of this version don't know this request")
}

// read returns a request's body.
func read(w http.ResponseWriter, r *http.Request, asked route.Route) ([]byte, *refusal) {
	if r.ContentLength > asked.MaxRequest {
		return nil, refuse(http.StatusRequestEntityTooLarge, "", "the request is too large")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, asked.MaxRequest))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, refuse(http.StatusRequestEntityTooLarge, "", "the request is too large")
	case err != nil:
		return nil, refuse(http.StatusBadRequest, "", "the request could not be read")
	}
	return body, nil
}

// answer has a request answered.
func (s *Server) answer(ctx context.Context, w http.ResponseWriter, asked route.Route, mode *Mode, caller Caller, body []byte) *refusal {
	value, err := mode.Handlers.answers[asked.Name](ctx, caller, body)
	var text []byte
	if err == nil {
		text, err = encode(asked, value, s.log)
	}
	if err != nil {
		return s.failed(asked, mode, caller, err)
	}
	w.Header().Set("Content-Type", "application/json")
	// The caller can have gone; what was asked is done all the same.
	_, _ = w.Write(text)
	return nil
}

// stream has a request answered bit by bit. Once there was something, an error can
// only end the connection.
func (s *Server) stream(ctx context.Context, w *pieces, asked route.Route, mode *Mode, caller Caller, body []byte) *refusal {
	w.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	err := mode.Handlers.streams[asked.Name](ctx, caller, body, w)
	switch {
	case err == nil:
		return nil
	case !w.begun:
		return s.failed(asked, mode, caller, err)
	}
	panic(http.ErrAbortHandler)
}

// failed returns what the caller hears of an error: the whole of it only if it is
// meant for callers, or for an admin.
func (s *Server) failed(asked route.Route, mode *Mode, caller Caller, err error) *refusal {
	var meant *message.Error
	if errors.As(err, &meant) {
		return &refusal{http.StatusConflict, meant}
	}
	s.log.Warn("a request failed", "route", asked.Name, "from", caller.Address, "err", err)
	if caller.Identity.Role == pki.RoleAdmin || mode.State != route.Open {
		return refuse(http.StatusInternalServerError, "", err.Error())
	}
	return refuse(http.StatusInternalServerError, "", "the node failed")
}

// pieces writes a stream. Whoever doesn't take a piece in time loses the connection.
type pieces struct {
	w       http.ResponseWriter
	control *http.ResponseController
	pause   time.Duration
	begun   bool
}

// Write writes a piece, and returns when the connection has taken it.
func (p *pieces) Write(piece []byte) (int, error) {
	p.begun = true
	if err := p.control.SetWriteDeadline(time.Now().Add(p.pause)); err != nil {
		return 0, err
	}
	n, err := p.w.Write(piece)
	if err != nil {
		return n, err
	}
	return n, p.control.Flush()
}
