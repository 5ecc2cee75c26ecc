package main

import (
	"context"
	"errors"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"powercloud.unidatum.com/tests/s3server"
)

// service is an S3 server with a proxy in front of it that answers late. The proxy
// passes bodies on as they come and keeps nothing of a request, unlike that of
// package s3proxy, but what it was: they are counted.
type service struct {
	server *s3server.Server
	// url is the proxy's address, http://HOST.
	url, host string

	front     *http.Server
	transport *http.Transport

	mu     sync.Mutex
	counts map[string]int
}

// startService starts a server with empty buckets that keeps everything below an
// existing directory. It must be stopped.
func startService(dir string, buckets []string, latency time.Duration) (*service, error) {
	server, err := s3server.Run(dir)
	if err != nil {
		return nil, err
	}
	s := &service{server: server, counts: map[string]int{},
		transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 1024}}
	for _, bucket := range buckets {
		if _, err := server.Bucket(bucket); err != nil {
			return nil, errors.Join(err, server.Stop())
		}
	}
	target, err := url.Parse(server.Endpoint)
	if err != nil {
		return nil, errors.Join(err, server.Stop())
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, server.Stop())
	}
	s.host = listener.Addr().String()
	s.url = "http://" + s.host
	s.front = &http.Server{Handler: s.late(target, latency), ReadHeaderTimeout: time.Minute}
	go func() { _ = s.front.Serve(listener) }() // until stop closes it
	return s, nil
}

func (s *service) stop() error {
	err := s.front.Close()
	s.transport.CloseIdleConnections()
	return errors.Join(err, s.server.Stop())
}

// late passes requests on to the target after a while.
func (s *service) late(target *url.URL, latency time.Duration) http.Handler {
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			// The Host header stays, as the signature covers it.
			r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host
		},
		Transport:  s.transport,
		BufferPool: &copyBuffers{},
		// Clients that give a request up are none of our business.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.count(r)
		if sleep(r.Context(), latency) == nil {
			proxy.ServeHTTP(w, r)
		}
	})
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *service) count(r *http.Request) {
	what := r.Method
	query := r.URL.Query()
	switch {
	case r.Method == http.MethodGet && (query.Has("list-type") || query.Has("delimiter") || query.Has("prefix")):
		what = "LIST"
	case r.Method == http.MethodGet && r.Header.Get("Range") != "":
		what = "GET of a range"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[what]++
}

// taken returns how many requests of each kind there were since it was last
// called. Without a service there were none.
func (s *service) taken() map[string]int {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := maps.Clone(s.counts)
	clear(s.counts)
	return counts
}

// copyBuffers keeps the proxy's buffers.
type copyBuffers struct{ pool sync.Pool }

// Get returns a buffer.
func (b *copyBuffers) Get() []byte {
	if buf, ok := b.pool.Get().(*[]byte); ok {
		return *buf
	}
	return make([]byte, 64<<10)
}

// Put takes a buffer back.
func (b *copyBuffers) Put(buf []byte) { b.pool.Put(&buf) }
