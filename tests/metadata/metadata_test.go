package metadata

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"powercloud.unidatum.com/tests/namespace"
)

func TestMain(m *testing.M) { namespace.Main(m) }

// ask sends one request by a transport and returns the answer's status, headers and
// body. Headers are pairs of names and values.
func ask(ctx context.Context, transport *http.Transport, method, url string, headers ...string) (int, http.Header, string, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return 0, nil, "", err
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	answer, err := transport.RoundTrip(r)
	if err != nil {
		return 0, nil, "", err
	}
	body, err := io.ReadAll(answer.Body)
	return answer.StatusCode, answer.Header, string(body), errors.Join(err, answer.Body.Close())
}

// transport leads to a server, by one connection a request.
func transport(s *Server) *http.Transport {
	return &http.Transport{DialContext: s.Dial, DisableKeepAlives: true}
}

// request is one request and the status that must answer it.
type request struct {
	status int
	method string
	path   string
	// headers are pairs of names and values.
	headers []string
}

// check sends requests.
func check(t *testing.T, s *Server, requests map[string]request) {
	t.Helper()
	for name, r := range requests {
		status, _, body, err := ask(t.Context(), transport(s), r.method, "http://169.254.169.254"+r.path, r.headers...)
		if status != r.status || err != nil {
			t.Errorf("%s: %d %q, %v", name, status, body, err)
		}
	}
}

func TestAWS(t *testing.T) {
	cloud := &AWS{UserData: []byte("some\x00data")}
	s := Start(t, cloud)
	ttl := func(v string) []string { return []string{"X-aws-ec2-metadata-token-ttl-seconds", v} }
	check(t, s, map[string]request{
		"no lifetime":       {400, "PUT", "/latest/api/token", nil},
		"no seconds":        {400, "PUT", "/latest/api/token", ttl("0")},
		"too many seconds":  {400, "PUT", "/latest/api/token", ttl("21601")},
		"no number":         {400, "PUT", "/latest/api/token", ttl("6h")},
		"passed on":         {403, "PUT", "/latest/api/token", append(ttl("60"), "X-Forwarded-For", "192.0.2.1")},
		"GET of a token":    {405, "GET", "/latest/api/token", ttl("60")},
		"POST":              {405, "POST", "/latest/api/token", ttl("60")},
		"no token":          {401, "GET", "/latest/user-data", nil},
		"a made-up token":   {401, "GET", "/latest/user-data", []string{"X-aws-ec2-metadata-token", "AQAAAK"}},
		"an empty token":    {401, "GET", "/latest/user-data", []string{"X-aws-ec2-metadata-token", ""}},
		"no token, nothing": {401, "GET", "/latest/nothing", nil},
	})
	_, header, token, err := ask(t.Context(), transport(s), "PUT", "http://169.254.169.254/latest/api/token", ttl("21600")...)
	if err != nil || len(token) != 56 || header.Get("X-aws-ec2-metadata-token-ttl-seconds") != "21600" {
		t.Fatalf("%q, %v, %v", token, header, err)
	}
	with := []string{"X-aws-ec2-metadata-token", token}
	check(t, s, map[string]request{
		"something else": {404, "GET", "/latest/nothing", with},
		"HEAD":           {200, "HEAD", "/latest/user-data", with},
		"POST":           {405, "POST", "/latest/user-data", with},
	})
	status, _, body, err := ask(t.Context(), transport(s), "GET", "http://169.254.169.254/latest/user-data", with...)
	if status != 200 || body != "some\x00data" || err != nil {
		t.Errorf("%d %q, %v", status, body, err)
	}
	cloud.Expire()
	check(t, s, map[string]request{"an expired token": {401, "GET", "/latest/user-data", with}})
	check(t, Start(t, &AWS{Off: true, UserData: []byte("x")}), map[string]request{
		"a token, turned off": {403, "PUT", "/latest/api/token", ttl("60")},
		"a value, turned off": {403, "GET", "/latest/user-data", nil},
	})
}

// A packet that arrives with a hop limit below the one that a socket demands is
// dropped: for the packet that is as if there were so many more hops.
func TestHopLimit(t *testing.T) {
	for _, c := range []struct {
		limit, hops int
		arrives     bool
	}{{0, 1, true}, {0, 2, false}, {2, 2, true}, {2, 3, false}} {
		s := Start(t, &AWS{HopLimit: c.limit})
		timeout := time.Minute
		if !c.arrives {
			timeout = 300 * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		far := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
			var failure error
			err := raw.Control(func(fd uintptr) {
				failure = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MINTTL, c.hops)
			})
			return errors.Join(err, failure)
		}}
		by := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return far.DialContext(ctx, network, s.listeners[0].Addr().String())
		}}
		status, _, _, err := ask(ctx, by, "PUT", "http://169.254.169.254/latest/api/token", "X-aws-ec2-metadata-token-ttl-seconds", "60")
		if arrived := status == 200 && err == nil; arrived != c.arrives || !arrived && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with a limit of %d over %d hops: %d, %v", c.limit, c.hops, status, err)
		}
		cancel()
		// What isn't a token goes further.
		if status, _, _, err := ask(t.Context(), by, "GET", "http://169.254.169.254/latest/user-data"); status != 401 || err != nil {
			t.Errorf("another answer: %d, %v", status, err)
		}
	}
}

func TestGoogleCloud(t *testing.T) {
	s := Start(t, &GoogleCloud{UserData: []byte("some\x00data")})
	const path = "/computeMetadata/v1/instance/attributes/user-data"
	flavor := []string{"Metadata-Flavor", "Google"}
	check(t, s, map[string]request{
		"no header":         {403, "GET", path, nil},
		"another flavor":    {403, "GET", path, []string{"Metadata-Flavor", "Vanilla"}},
		"passed on":         {403, "GET", path, append(slices.Clone(flavor), "X-Forwarded-For", "")},
		"another attribute": {404, "GET", path + "2", flavor},
		"POST":              {405, "POST", path, flavor},
	})
	status, header, body, err := ask(t.Context(), transport(s), "GET", "http://metadata.google.internal"+path, flavor...)
	if status != 200 || header.Get("Metadata-Flavor") != "Google" || body != "some\x00data" || err != nil {
		t.Errorf("%d %q %v, %v", status, body, header, err)
	}
	check(t, Start(t, &GoogleCloud{}), map[string]request{"no user data": {404, "GET", path, flavor}})
}

func TestAzure(t *testing.T) {
	s := Start(t, &Azure{UserData: []byte("some\x00data")})
	const path = "/metadata/instance/compute/userData"
	metadata := []string{"Metadata", "true"}
	check(t, s, map[string]request{
		"no header":        {400, "GET", path + "?api-version=2021-01-01&format=text", nil},
		"another value":    {400, "GET", path + "?api-version=2021-01-01&format=text", []string{"Metadata", "1"}},
		"passed on":        {400, "GET", path + "?api-version=2021-01-01&format=text", append(slices.Clone(metadata), "X-Forwarded-For", "192.0.2.1")},
		"no version":       {400, "GET", path + "?format=text", metadata},
		"no such version":  {400, "GET", path + "?api-version=latest&format=text", metadata},
		"too old":          {404, "GET", path + "?api-version=2020-12-01&format=text", metadata},
		"no format":        {400, "GET", path + "?api-version=2021-01-01", metadata},
		"something else":   {404, "GET", path + "2?api-version=2021-01-01&format=text", metadata},
		"POST":             {405, "POST", path + "?api-version=2021-01-01&format=text", metadata},
		"POST, no headers": {405, "POST", path, nil},
	})
	status, _, body, err := ask(t.Context(), transport(s), "GET", "http://169.254.169.254"+path+"?api-version=2021-01-01&format=text", metadata...)
	if status != 200 || body != "c29tZQBkYXRh" || err != nil {
		t.Errorf("%d %q, %v", status, body, err)
	}
	status, _, body, err = ask(t.Context(), transport(Start(t, &Azure{})), "GET", "http://169.254.169.254"+path+"?api-version=2021-02-01&format=text", metadata...)
	if status != 200 || body != "" || err != nil {
		t.Errorf("no user data: %d %q, %v", status, body, err)
	}
}

func TestFaults(t *testing.T) {
	s := Start(t, &GoogleCloud{UserData: []byte("data")})
	get := func(ctx context.Context) (int, http.Header, string, error) {
		return ask(ctx, transport(s), "GET", "http://169.254.169.254/computeMetadata/v1/instance/attributes/user-data", "Metadata-Flavor", "Google")
	}
	s.Inject(Tokens, 1, Drop) // No request of these matches.
	s.Inject(Values, 1, Say(503, "later"))
	s.Inject(All, 1, Redirect("http://192.0.2.1/"))
	s.Inject(All, 1, Relabel("Metadata-Flavor", ""))
	s.Inject(All, 1, Slow(time.Nanosecond))
	for _, want := range []struct {
		status int
		body   string
		flavor string
	}{{503, "later", "Google"}, {307, "", ""}, {200, "data", ""}, {200, "data", "Google"}, {200, "data", "Google"}} {
		status, header, body, err := get(t.Context())
		if status != want.status || body != want.body || header.Get("Metadata-Flavor") != want.flavor || err != nil {
			t.Errorf("%d %q %q, %v; want %+v", status, body, header.Get("Metadata-Flavor"), err, want)
		}
	}
	for name, fault := range map[string]Fault{"drop": Drop, "cut": Cut(1), "garbage": Garbage, "silence": Silence, "endless": Endless} {
		ctx, giveUp := context.WithCancel(t.Context())
		s.Inject(All, 1, func(s *Server, w http.ResponseWriter, r *http.Request) {
			if name == "silence" || name == "endless" {
				giveUp()
			}
			fault(s, w, r)
		})
		if status, _, body, err := get(ctx); err == nil {
			t.Errorf("%s: %d %q", name, status, body[:min(len(body), 20)])
		}
		giveUp()
	}
	s.Inject(All, -1, Drop)
	s.Heal()
	if status, _, body, err := get(t.Context()); status != 200 || body != "data" || err != nil {
		t.Errorf("healed: %d %q, %v", status, body, err)
	}
	if got := s.Answers(); !slices.Equal(got, []int{200, 200}) || len(s.Requests()) != 11 {
		t.Errorf("the answers %v to %d requests", got, len(s.Requests()))
	}
}

func TestAddresses(t *testing.T) {
	for url, cloud := range map[string]Cloud{
		"http://169.254.169.254/latest/user-data":                       &AWS{},
		"http://[fd00:ec2::254]/latest/user-data":                       &AWS{},
		"http://169.254.169.254/computeMetadata/v1/":                    &GoogleCloud{},
		"http://[fd20:ce::254]/computeMetadata/v1/":                     &GoogleCloud{},
		"http://169.254.169.254/metadata/instance?api-version=anything": &Azure{},
	} {
		t.Run(strings.TrimPrefix(url, "http://"), func(t *testing.T) {
			s := StartIn(t, Network(t), Device, cloud)
			status, _, _, err := ask(t.Context(), &http.Transport{DisableKeepAlives: true}, "GET", url)
			if err != nil || !slices.Equal(s.Answers(), []int{status}) {
				t.Errorf("%d, %v", status, err)
			}
			if len(s.listeners) != len(cloud.addresses()) {
				t.Errorf("%d listeners", len(s.listeners))
			}
		})
	}
}
