package metadata

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"time"
)

// Match chooses requests.
type Match func(*http.Request) bool

// All matches every request.
func All(*http.Request) bool { return true }

// Tokens matches requests for a token of AWS.
func Tokens(r *http.Request) bool { return r.Method == http.MethodPut }

// Values matches requests for something that the service holds.
func Values(r *http.Request) bool { return r.Method == http.MethodGet }

// Fault answers a request in a server's place, or doesn't.
type Fault func(s *Server, w http.ResponseWriter, r *http.Request)

// Silence answers nothing until the client gives up.
func Silence(s *Server, _ http.ResponseWriter, r *http.Request) {
	s.wait(r, 0)
	panic(http.ErrAbortHandler) // net/http's way to close the connection.
}

// Drop closes the connection without an answer.
func Drop(*Server, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// Slow answers rightly, one byte of the body after the other with a pause before
// each.
func Slow(pause time.Duration) Fault {
	return func(s *Server, w http.ResponseWriter, r *http.Request) {
		answer := s.rightly(w, r)
		w.WriteHeader(answer.Code)
		for _, b := range answer.Body.Bytes() {
			_ = http.NewResponseController(w).Flush()
			if !s.wait(r, pause) {
				panic(http.ErrAbortHandler)
			}
			_, _ = w.Write([]byte{b})
		}
	}
}

// Cut announces the whole of the right answer's body, and closes the connection
// before its last n bytes.
func Cut(n int) Fault {
	return func(s *Server, w http.ResponseWriter, r *http.Request) {
		answer := s.rightly(w, r)
		body := answer.Body.Bytes()
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(answer.Code)
		_, _ = w.Write(body[:max(len(body)-n, 0)])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// Endless answers with a body that begins with the right one's and goes on until the
// client gives up.
func Endless(s *Server, w http.ResponseWriter, r *http.Request) {
	answer := s.rightly(w, r)
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
	for {
		if _, err := w.Write(bytes.Repeat([]byte("A"), 64<<10)); err != nil {
			panic(http.ErrAbortHandler)
		}
	}
}

// Say answers with a status and a body, whatever was asked. The headers are the right
// answer's.
func Say(status int, body string) Fault {
	return func(s *Server, w http.ResponseWriter, r *http.Request) {
		s.rightly(w, r)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// Redirect sends the client elsewhere.
func Redirect(target string) Fault {
	return func(_ *Server, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", target)
		w.WriteHeader(http.StatusTemporaryRedirect)
	}
}

// Relabel answers rightly, but for one header, which has another value or, where that
// is empty, is missing.
func Relabel(name, value string) Fault {
	return func(s *Server, w http.ResponseWriter, r *http.Request) {
		answer := s.rightly(w, r)
		w.Header().Set(name, value)
		if value == "" {
			w.Header().Del(name)
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	}
}

// Garbage answers with bytes that aren't HTTP.
func Garbage(_ *Server, w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_, _ = conn.Write([]byte("\x00\xff\x1b[31mSSH-2.0-whatever\r\n\r\n"))
	_ = conn.Close()
}

// rightly returns the right answer. Its headers are those of w from then on.
func (s *Server) rightly(w http.ResponseWriter, r *http.Request) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	s.cloud.ServeHTTP(answer, r)
	for name, values := range answer.Header() {
		w.Header()[name] = slices.Clone(values)
	}
	return answer
}

// wait waits, for ever if the time is 0, unless the client goes away or the server
// stops, when it returns false.
func (s *Server) wait(r *http.Request, pause time.Duration) bool {
	var over <-chan time.Time
	if pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
		return true
	case <-r.Context().Done():
	case <-s.closing:
	}
	return false
}
