// Package s3proxy stands between an S3 client and a server in tests, and does
// what networks, overloaded services and lying ones do.
package s3proxy

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Proxy passes requests on to a server, except for the faults that it was told
// to commit. Its methods may be called from several goroutines at once.
type Proxy struct {
	// URL is its address, http://127.0.0.1:PORT.
	URL string

	target    *url.URL
	transport *http.Transport
	closing   chan struct{}

	mu       sync.Mutex
	rules    []*rule
	requests []*http.Request
	latency  time.Duration
	objects  map[string]*sync.RWMutex // by path, once they are serialized
}

// Match chooses requests.
type Match func(*http.Request) bool

// rule has a fault committed on the next few requests that match.
type rule struct {
	match Match
	times int // how many more; negative for ever
	fault Fault
}

// Start starts a proxy of the server at target, http://HOST:PORT, that stops when
// the test ends.
func Start(t testing.TB, target string) *Proxy {
	t.Helper()
	parsed, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{
		target:    parsed,
		transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 128},
		closing:   make(chan struct{}),
	}
	server := httptest.NewServer(p)
	p.URL = server.URL
	t.Cleanup(func() {
		close(p.closing)
		server.CloseClientConnections()
		server.Close()
		p.transport.CloseIdleConnections()
	})
	return p
}

// Inject has the fault committed on the next requests that match, so many times,
// or until Heal if times is negative. Of several faults that match, the one that
// was injected first is committed.
func (p *Proxy) Inject(match Match, times int, fault Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, &rule{match, times, fault})
}

// Heal ends all faults.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = nil
}

// Latency makes every answer come that much later.
func (p *Proxy) Latency(latency time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.latency = latency
}

// Serialize keeps requests for one object from overlapping when one of them
// changes it. S3 promises that a reader sees one version of an object; versitygw
// reads an object's checksum and its content one after the other, and of two
// versions when it is replaced in between.
func (p *Proxy) Serialize() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.objects = map[string]*sync.RWMutex{}
}

// lock returns what to call once a request was carried out.
func (p *Proxy) lock(r *http.Request) func() {
	p.mu.Lock()
	if p.objects == nil {
		p.mu.Unlock()
		return func() {}
	}
	object := p.objects[r.URL.Path]
	if object == nil {
		object = &sync.RWMutex{}
		p.objects[r.URL.Path] = object
	}
	p.mu.Unlock()
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		object.RLock()
		return object.RUnlock
	}
	object.Lock()
	return object.Unlock
}

// Requests returns the requests so far that match, without their bodies.
func (p *Proxy) Requests(match Match) []*http.Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found []*http.Request
	for _, request := range p.requests {
		if match(request) {
			found = append(found, request)
		}
	}
	return found
}

// Forget forgets the requests so far.
func (p *Proxy) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = nil
}

// ServeHTTP answers a request, or commits a fault.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fault, latency := p.note(r)
	x := &Exchange{Request: r, proxy: p, writer: w}
	if latency > 0 {
		x.wait(latency)
	}
	if fault != nil {
		fault(x)
		return
	}
	x.Reply(x.Forward())
}

// note remembers a request and returns what fault to commit on it.
func (p *Proxy) note(r *http.Request) (Fault, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := r.Clone(r.Context())
	seen.Body = http.NoBody
	p.requests = append(p.requests, seen)
	for _, rule := range p.rules {
		if rule.times != 0 && rule.match(r) {
			rule.times--
			return rule.fault, p.latency
		}
	}
	return nil, p.latency
}

// Exchange is a request on its way.
type Exchange struct {
	Request *http.Request

	proxy  *Proxy
	writer http.ResponseWriter
}

// Answer is what the server answers.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	// Cut is how many bytes of the body are left out, without a word, before the
	// connection is closed.
	Cut int
}

// Forward passes the request on and returns the server's answer. If the server
// gives none, neither does the proxy: the client's connection is closed.
func (x *Exchange) Forward() Answer {
	defer x.proxy.lock(x.Request)()
	out := x.Request.Clone(x.Request.Context())
	// The Host header stays, as the signature covers it.
	out.URL.Scheme, out.URL.Host = x.proxy.target.Scheme, x.proxy.target.Host
	out.RequestURI = ""
	if out.ContentLength == 0 {
		out.Body = http.NoBody
	}
	answer, err := x.proxy.transport.RoundTrip(out)
	if err != nil {
		x.Drop()
	}
	body, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		x.Drop()
	}
	return Answer{Status: answer.StatusCode, Header: answer.Header, Body: body}
}

// Reply sends an answer.
func (x *Exchange) Reply(answer Answer) {
	header := x.writer.Header()
	for name, values := range answer.Header {
		header[name] = slices.Clone(values)
	}
	if x.Request.Method != http.MethodHead {
		header.Set("Content-Length", strconv.Itoa(len(answer.Body)))
	}
	x.writer.WriteHeader(answer.Status)
	if x.Request.Method == http.MethodHead {
		return
	}
	sent := answer.Body[:max(len(answer.Body)-answer.Cut, 0)]
	if _, err := io.Copy(x.writer, bytes.NewReader(sent)); err != nil || answer.Cut > 0 {
		if flusher, ok := x.writer.(http.Flusher); ok {
			flusher.Flush()
		}
		x.Drop()
	}
}

// Drop closes the client's connection, whatever was sent of the answer.
func (x *Exchange) Drop() {
	panic(http.ErrAbortHandler) // net/http's way to say so
}

// wait waits, unless the client goes away or the proxy stops.
func (x *Exchange) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-x.Request.Context().Done():
	case <-x.proxy.closing:
	}
}

// Reset closes the client's connection so that the client sees it reset rather
// than end.
func (x *Exchange) Reset() {
	hijacker, ok := x.writer.(http.Hijacker)
	if !ok {
		x.Drop()
	}
	conn, _, err := hijacker.Hijack()
	if err != nil {
		x.Drop()
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
