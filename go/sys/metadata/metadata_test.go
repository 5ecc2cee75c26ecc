package metadata

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"powercloud.unidatum.com/tests/metadata"
	"powercloud.unidatum.com/tests/namespace"
)

func TestMain(m *testing.M) { namespace.Main(m) }

// limit is how many bytes the tests read.
const limit = 100

// reading is a reader that a test watches.
type reading struct {
	Reader
	log    bytes.Buffer
	pauses []time.Duration
}

// read returns a reader that is led to a stand-in, as by IPv4 without IPv6, and
// doesn't really wait.
func read(s *metadata.Server) *reading {
	r := &reading{}
	r.Reader = Reader{
		Limit: limit,
		Log:   slog.New(slog.NewTextHandler(&r.log, nil)),
		After: func(d time.Duration) <-chan time.Time {
			r.pauses = append(r.pauses, d)
			c := make(chan time.Time, 1)
			c <- time.Time{}
			return c
		},
	}
	if s != nil {
		r.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if address != "169.254.169.254:80" {
				return nil, &net.OpError{Op: "dial", Net: network, Err: unix.ENETUNREACH}
			}
			return s.Dial(ctx, network, address)
		}
	}
	return r
}

// cloud is a service, and its stand-in with some user data.
type cloud struct {
	Service
	standIn func(userData []byte) metadata.Cloud
	// requests is how many it takes to read user data.
	requests int
}

// clouds are all that there are.
func clouds() map[string]cloud {
	return map[string]cloud{
		"AWS":          {AWS(), func(d []byte) metadata.Cloud { return &metadata.AWS{UserData: d} }, 2},
		"Google Cloud": {GoogleCloud(), func(d []byte) metadata.Cloud { return &metadata.GoogleCloud{UserData: d} }, 1},
		"Azure":        {Azure(), func(d []byte) metadata.Cloud { return &metadata.Azure{UserData: d} }, 1},
	}
}

// onEach runs a test with each cloud.
func onEach(t *testing.T, test func(t *testing.T, c cloud)) {
	t.Helper()
	for name, c := range clouds() {
		t.Run(name, func(t *testing.T) { test(t, c) })
	}
}

func TestUserData(t *testing.T) {
	onEach(t, func(t *testing.T, c cloud) {
		for _, want := range []string{"x", "#!/bin/sh\nexit 1\n", "\x00\xff\r\n\r\n", strings.Repeat("y", limit-1), strings.Repeat("z", limit)} {
			s := metadata.Start(t, c.standIn([]byte(want)))
			r := read(s)
			got, err := r.UserData(t.Context(), c.Service)
			if string(got) != want || err != nil {
				t.Errorf("%q, %v; want %q", got, err, want)
			}
			if r.log.Len() > 0 || len(s.Requests()) != c.requests {
				t.Errorf("%d requests; the log has %q", len(s.Requests()), &r.log)
			}
		}
	})
}

func TestRequests(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://192.0.2.1:3128")
	t.Setenv("http_proxy", "http://192.0.2.1:3128")
	onEach(t, func(t *testing.T, c cloud) {
		s := metadata.Start(t, c.standIn([]byte("data")))
		r := read(s)
		r.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if address != "169.254.169.254:80" {
				return nil, fmt.Errorf("a connection to %s", address)
			}
			return s.Dial(ctx, network, address)
		}
		if _, err := r.UserData(t.Context(), c.Service); err != nil {
			t.Error(err)
		}
		for _, r := range s.Requests() {
			if r.Header.Values("X-Forwarded-For") != nil || r.Header.Values("Via") != nil || r.Header.Values("Accept-Encoding") != nil || r.URL.IsAbs() {
				t.Errorf("the request %s %s has the headers %v", r.Method, r.URL, r.Header)
			}
		}
	})
}

func TestMoreThanTheLimit(t *testing.T) {
	onEach(t, func(t *testing.T, c cloud) {
		long := strings.Repeat("0123456789", limit)
		s := metadata.Start(t, c.standIn([]byte(long)))
		for what, fault := range map[string]metadata.Fault{"long": nil, "endless": metadata.Endless} {
			if fault != nil {
				s.Inject(metadata.Values, -1, fault)
			}
			got, err := read(s).UserData(t.Context(), c.Service)
			if string(got) != long[:limit] || err != nil {
				t.Errorf("%s: %q, %v", what, got, err)
			}
			s.Heal()
		}
	})
}

func TestNoUserData(t *testing.T) {
	onEach(t, func(t *testing.T, c cloud) {
		for what, data := range map[string][]byte{"none": nil, "empty": {}} {
			r := read(metadata.Start(t, c.standIn(data)))
			got, err := r.UserData(t.Context(), c.Service)
			if !errors.Is(err, ErrNone) || got != nil || r.log.Len() > 0 {
				t.Errorf("%s: %q, %v; the log has %q", what, got, err, &r.log)
			}
		}
	})
}

// faults are those that a service may recover from, by what the log says of them.
func faults() map[string]metadata.Fault {
	return map[string]metadata.Fault{
		"the connection ended before its answer did":           metadata.Drop,
		"it answers 503, Service Unavailable":                  metadata.Say(http.StatusServiceUnavailable, "SECRET"),
		"it answers 429, Too Many Requests":                    metadata.Say(http.StatusTooManyRequests, "SECRET"),
		"it answers 410, Gone":                                 metadata.Say(http.StatusGone, "SECRET"),
		"it answers 401, Unauthorized":                         metadata.Say(http.StatusUnauthorized, "SECRET"),
		"it answers 403, Forbidden":                            metadata.Say(http.StatusForbidden, "SECRET"),
		"it answers 599":                                       metadata.Say(599, "SECRET"),
		"it answers 204, No Content":                           metadata.Say(http.StatusNoContent, ""),
		"it answers with something that isn't HTTP":            metadata.Garbage,
		"read its answer: the connection ended before its ans": metadata.Cut(1),
	}
}

func TestRecovery(t *testing.T) {
	onEach(t, func(t *testing.T, c cloud) {
		for want, fault := range faults() {
			s := metadata.Start(t, c.standIn([]byte("SECRET")))
			s.Inject(metadata.Values, 4, fault)
			r := read(s)
			got, err := r.UserData(t.Context(), c.Service)
			if string(got) != "SECRET" || err != nil {
				t.Errorf("%s: %q, %v", want, got, err)
			}
			seconds := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}
			if !slices.Equal(r.pauses, seconds) {
				t.Errorf("%s: the pauses %v", want, r.pauses)
			}
			log := r.log.String()
			if strings.Count(log, `msg="metadata service not answering" cloud=`) != 4 || strings.Count(log, want) != 4 || strings.Contains(log, "SECRET") {
				t.Errorf("%s: the log has\n%s", want, log)
			}
		}
	})
}

func TestNotAnswering(t *testing.T) {
	onEach(t, func(t *testing.T, c cloud) {
		s := metadata.Start(t, c.standIn([]byte("SECRET")))
		s.Inject(metadata.Values, -1, metadata.Say(http.StatusInternalServerError, "SECRET"))
		r := read(s)
		got, err := r.UserData(t.Context(), c.Service)
		if got != nil || !errors.Is(err, ErrNotAnswering) || !strings.HasPrefix(err.Error(), "metadata service not answering in 5 tries: ask 169.254.169.254: ") {
			t.Errorf("%q, %v", got, err)
		}
		if log := r.log.String(); strings.Count(log, "not answering") != 5 || !strings.Contains(log, "try=5 of=5") || len(r.pauses) != 4 || strings.Contains(log, "SECRET") {
			t.Errorf("after the pauses %v, the log has\n%s", r.pauses, log)
		}
	})
}

func TestRedirectsArentFollowed(t *testing.T) {
	onEach(t, func(t *testing.T, c cloud) {
		elsewhere := metadata.Start(t, c.standIn([]byte("forged")))
		s := metadata.Start(t, c.standIn([]byte("data")))
		s.Inject(metadata.All, 1, metadata.Redirect("http://192.0.2.1/latest/user-data"))
		r := read(s)
		toServer := r.Dial
		r.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if strings.HasPrefix(address, "192.0.2.1:") {
				return elsewhere.Dial(ctx, network, address)
			}
			return toServer(ctx, network, address)
		}
		got, err := r.UserData(t.Context(), c.Service)
		if string(got) != "data" || err != nil || len(elsewhere.Requests()) > 0 || len(r.pauses) != 1 {
			t.Errorf("%q, %v; the log has %s", got, err, &r.log)
		}
	})
}

func TestSlowServicesAreGivenUp(t *testing.T) {
	onEach(t, func(t *testing.T, c cloud) {
		t.Parallel()
		for what, fault := range map[string]metadata.Fault{"silent": metadata.Silence, "slow": metadata.Slow(300 * time.Millisecond)} {
			t.Run(what, func(t *testing.T) {
				t.Parallel()
				s := metadata.Start(t, c.standIn([]byte("a little longer")))
				s.Inject(metadata.Values, 1, fault)
				r := read(s)
				r.timeout = time.Second
				got, err := r.UserData(t.Context(), c.Service)
				if string(got) != "a little longer" || err != nil || !strings.Contains(r.log.String(), "it hasn't answered in time") {
					t.Errorf("%q, %v; the log has %s", got, err, &r.log)
				}
			})
		}
	})
}

func TestTheContextEndsIt(t *testing.T) {
	onEach(t, func(t *testing.T, c cloud) {
		ctx, stop := context.WithCancel(t.Context())
		s := metadata.Start(t, c.standIn([]byte("data")))
		s.Inject(metadata.All, -1, func(s *metadata.Server, w http.ResponseWriter, r *http.Request) {
			stop()
			metadata.Silence(s, w, r)
		})
		if got, err := read(s).UserData(ctx, c.Service); !errors.Is(err, context.Canceled) || got != nil {
			t.Errorf("in a request: %q, %v", got, err)
		}
		ctx, stop = context.WithCancel(t.Context())
		r := read(nil)
		r.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no network") }
		r.After = func(time.Duration) <-chan time.Time { stop(); return nil }
		if got, err := r.UserData(ctx, c.Service); !errors.Is(err, context.Canceled) || got != nil {
			t.Errorf("in a pause: %q, %v", got, err)
		}
	})
}

func TestRealAddresses(t *testing.T) {
	onEach(t, func(t *testing.T, c cloud) {
		metadata.StartIn(t, metadata.Network(t), metadata.Device, c.standIn([]byte("data")))
		r := read(nil)
		if got, err := r.UserData(t.Context(), c.Service); string(got) != "data" || err != nil {
			t.Errorf("%q, %v; the log has\n%s", got, err, &r.log)
		}
	})
}

// Without IPv4, the services that have an address of IPv6 are found there.
func TestRealAddressesOfIPv6(t *testing.T) {
	onEach(t, func(t *testing.T, c cloud) {
		if len(c.addresses) == 1 {
			t.Skip("this one has none")
		}
		metadata.StartIn(t, metadata.Network(t), metadata.Device, c.standIn([]byte("data")))
		r := read(nil)
		r.Dial = func(ctx context.Context, _, address string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp6", address)
		}
		if got, err := r.UserData(t.Context(), c.Service); string(got) != "data" || err != nil {
			t.Errorf("%q, %v; the log has\n%s", got, err, &r.log)
		}
	})
}

// A machine without any way there has its answer at once, but for the pauses.
func TestNoNetwork(t *testing.T) {
	namespace.Enter(t)
	r := read(nil)
	if _, err := r.UserData(t.Context(), AWS()); !errors.Is(err, ErrNotAnswering) || !strings.Contains(err.Error(), "fd00:ec2::254") {
		t.Errorf("%v", err)
	}
}
