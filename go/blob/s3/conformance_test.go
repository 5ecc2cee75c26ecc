package s3

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
	"powercloud.unidatum.com/tests/s3proxy"
	"powercloud.unidatum.com/tests/s3server"
)

// open returns the location of that text, with the server's credentials. It waits
// for nothing before it tries again.
func open(t *testing.T, getenv func(string) string, text string) *Location {
	t.Helper()
	spec, err := blob.ParseSpec(text)
	if err != nil {
		t.Fatal(err)
	}
	l, err := New(spec, Options{Getenv: getenv})
	if err != nil {
		t.Fatal(err)
	}
	l.sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	t.Cleanup(l.client.CloseIdleConnections)
	return l
}

// bucket makes a bucket at the server.
func bucket(t *testing.T, server *s3server.Server, name string) string {
	t.Helper()
	dir, err := server.Bucket(name)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// waits records how long a location waits before it tries again, instead of
// waiting.
type waits struct {
	mu    sync.Mutex
	times []time.Duration
}

func (w *waits) sleep(ctx context.Context, wait time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.times = append(w.times, wait)
	return ctx.Err()
}

func TestConformance(t *testing.T) {
	server := s3server.Start(t)
	for _, test := range []struct {
		name, prefix string
		fault        s3proxy.Fault // on the way to the server, unless it is nil
	}{
		{"Bucket", "", nil},
		{"Prefix", "/pc/my cluster+1", nil},
		{"MildFaults", "/pc", s3proxy.Mildly(
			s3proxy.Drop, s3proxy.DropAnswer, s3proxy.Reset, s3proxy.Cut(1), s3proxy.CorruptUpload, s3proxy.If(s3proxy.Gets, s3proxy.Corrupt),
			s3proxy.Fail(503, "SlowDown", "Please reduce your request rate."),
			s3proxy.Fail(500, "InternalError", "We encountered an internal error. Please try again."),
		)},
	} {
		t.Run(test.name, func(t *testing.T) {
			buckets := 0
			blobtest.Run(t, func(t *testing.T) blob.Location {
				buckets++
				name := fmt.Sprintf("%s-%d", strings.ToLower(test.name), buckets)
				bucket(t, server, name)
				location := server.Location(name + test.prefix)
				if test.fault == nil {
					l := open(t, server.Getenv, location)
					// A checksum that versitygw tells can be another version's; see
					// s3proxy.Serialize.
					l.checksums.Store(false)
					return l
				}
				proxy := s3proxy.Start(t, server.Endpoint)
				proxy.Serialize()
				proxy.Inject(s3proxy.All, -1, test.fault)
				return open(t, server.Getenv, strings.Replace(location, server.Endpoint, proxy.URL, 1))
			})
		})
	}
}
