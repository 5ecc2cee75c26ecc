package server

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/api/proof"
	"powercloud.unidatum.com/go/api/route"
	"powercloud.unidatum.com/go/pki"
)

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
	c := r.Context().Value(connectionKey{}).(*connection)
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
	control := http.NewResponseController(w)
	// Whoever is refused has as long to take the answer, and to send what isn't read.
	if err := limit(control, time.Now().Add(s.limits.Header)); err != nil {
		return refuse(http.StatusInternalServerError, "", "the connection failed")
	}
	if r.ProtoMajor != 1 || r.ProtoMinor != 1 {
		// There the end of a stream would look the same whether or not it is whole.
		return refuse(http.StatusHTTPVersionNotSupported, "", "nodes speak HTTP/1.1")
	}
	state := c.ConnectionState()
	identity, err := c.mode.identify(&state)
	if err != nil {
		return refuse(http.StatusForbidden, message.CodeDenied, err.Error())
	}
	asked, refused := s.find(r, c.mode, identity)
	if refused != nil {
		return refused
	}
	deadline := time.Now().Add(asked.Timeout)
	body, refused := s.receive(w, r, c, control, asked, deadline)
	if refused != nil {
		return refused
	}
	defer s.turns.give(c.caller)
	defer clear(body)
	ctx := r.Context()
	if !asked.Stream {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
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
		allowed := func() error {
			_, err := c.mode.identify(&state)
			return err
		}
		return s.stream(ctx, &pieces{w: w, control: control, pause: s.limits.Pause, allowed: allowed}, asked, c.mode, caller, body)
	}
	return s.answer(ctx, w, control, asked, c.mode, caller, body)
}

// limit sets how long reading from and writing to a connection may take.
func limit(control *http.ResponseController, deadline time.Time) error {
	return errors.Join(control.SetReadDeadline(deadline), control.SetWriteDeadline(deadline))
}

// receive takes a turn and returns a request's body. The turn is the caller's unless
// there is a refusal.
func (s *Server) receive(w http.ResponseWriter, r *http.Request, c *connection, control *http.ResponseController, asked route.Route, deadline time.Time) ([]byte, *refusal) {
	busy := func() *refusal {
		return refuse(http.StatusServiceUnavailable, message.CodeBusy, "the node has too many requests to answer; try again")
	}
	var body []byte
	var refused *refusal
	// Where anyone may ask, requests are small, and one caller can be many. So whoever
	// sends slowly has no turn meanwhile. A member has turns of its own, and as large
	// requests as it has turns.
	anyone := c.mode.Identify == nil
	if anyone {
		if body, refused = read(w, r, asked); refused != nil {
			return nil, refused
		}
	}
	if !s.turns.take(c.caller) {
		return nil, busy()
	}
	err := limit(control, deadline)
	if err != nil {
		refused = refuse(http.StatusInternalServerError, "", "the connection failed")
	} else if !anyone {
		body, refused = read(w, r, asked)
	}
	if refused != nil {
		s.turns.give(c.caller)
		return nil, refused
	}
	// From here on the turn counts: a crowd doesn't push out who is being answered.
	c.gate.admitted.remove(c.NetConn())
	return body, nil
}

// find returns the route that a request asks for, if the caller may.
func (s *Server) find(r *http.Request, mode *Mode, identity pki.Identity) (route.Route, *refusal) {
	for _, candidate := range route.All() {
		// The address is compared as it came: there is one way to write it.
		if candidate.Method != r.Method || candidate.Path != r.RequestURI {
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
func (s *Server) answer(ctx context.Context, w http.ResponseWriter, control *http.ResponseController, asked route.Route, mode *Mode, caller Caller, body []byte) *refusal {
	var text []byte
	err := s.contain(asked, func() error {
		value, err := mode.Handlers.answers[asked.Name](ctx, caller, body)
		if err == nil {
			text, err = encode(asked, value, s.log)
		}
		return err
	})
	if err != nil {
		return s.failed(asked, mode, caller, err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	// The turn lasts until the connection has taken the answer. The caller can have gone;
	// what was asked is done all the same.
	_, _ = w.Write(text)
	_ = control.Flush()
	return nil
}

// errPanic is what a caller hears of a panic.
var errPanic = errors.New("the node failed; its log says how")

// contain does something of a route. A panic in there is a fault of the node's, that is
// no reason not to answer others.
func (s *Server) contain(asked route.Route, do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("answering a request panicked", "route", asked.Name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = errPanic
		}
	}()
	return do()
}

// stream has a request answered bit by bit, for as long as the caller may have that. Once
// there was something, an error can only end the connection.
func (s *Server) stream(ctx context.Context, w *pieces, asked route.Route, mode *Mode, caller Caller, body []byte) *refusal {
	w.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	ctx, end := s.watch(ctx, w.allowed)
	defer end()
	err := s.contain(asked, func() error { return mode.Handlers.streams[asked.Name](ctx, caller, body, w) })
	if err != nil && w.begun {
		panic(http.ErrAbortHandler)
	}
	// The last piece can have been long ago, and its time over.
	if late := w.control.SetWriteDeadline(time.Now().Add(w.pause)); late != nil {
		panic(http.ErrAbortHandler)
	}
	if err == nil {
		return nil
	}
	if denied := w.allowed(); denied != nil {
		return refuse(http.StatusForbidden, message.CodeDenied, denied.Error())
	}
	return s.failed(asked, mode, caller, err)
}

// watch returns a context that ends once a caller isn't allowed to have a stream any more:
// one in which nothing happens would keep the turn of somebody who was revoked for it. The
// caller of watch calls end.
func (s *Server) watch(ctx context.Context, allowed func() error) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer cancel()
		tick := time.NewTicker(s.limits.Recheck)
		defer tick.Stop()
		for allowed() == nil {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return ctx, func() {
		cancel()
		<-ended
	}
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
	// allowed returns an error when the caller is nobody any more: a stream can last
	// longer than the certificate, which can be revoked too.
	allowed func() error
	begun   bool
}

// Write writes a piece, and returns when the connection has taken it.
func (p *pieces) Write(piece []byte) (int, error) {
	if err := p.allowed(); err != nil {
		return 0, err
	}
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
