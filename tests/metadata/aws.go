package metadata

import (
	"crypto/rand"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// AWS is EC2's instance metadata service, version 2 of its protocol alone, as with
// the option HttpTokens=required:
//
//   - A PUT to /latest/api/token, whose header X-aws-ec2-metadata-token-ttl-seconds is
//     from 1 to 21600, is answered with a token. Without that header, or with another
//     value, it is answered with 400.
//   - A PUT with the header X-Forwarded-For is answered with 403: a proxy has passed it
//     on.
//   - The answer with the token goes no further than HopLimit hops.
//   - A GET needs the header X-aws-ec2-metadata-token with a token that hasn't expired.
//     Otherwise it is answered with 401.
//   - Without user data, /latest/user-data is answered with 404.
//   - Where the service is turned off, everything is answered with 403.
//
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/configuring-instance-metadata-service.html
// and https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html
type AWS struct {
	// UserData is nil where the machine has none. AWS takes 16 KiB at most.
	UserData []byte
	// Off is whether the service is turned off: HttpEndpoint=disabled.
	Off bool
	// HopLimit is HttpPutResponseHopLimit, from 1 to 64; 0 stands for 1, which is
	// AWS's own default.
	HopLimit int

	mu     sync.Mutex
	tokens map[string]time.Time // until when each is good
}

const (
	tokenHeader = "X-aws-ec2-metadata-token"
	ttlHeader   = "X-aws-ec2-metadata-token-ttl-seconds"
	maxTTL      = 21600
	// usualHops is the hop limit of everything but a token.
	usualHops = 64
)

func (a *AWS) addresses() []netip.Addr {
	return []netip.Addr{linkLocal(), netip.MustParseAddr("fd00:ec2::254")}
}

// Expire ends the time of every token.
func (a *AWS) Expire() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tokens = nil
}

// ServeHTTP answers one request.
func (a *AWS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHops(r, usualHops)
	w.Header().Set("Server", "EC2ws")
	switch {
	case a.Off:
		refuse(w, http.StatusForbidden)
	case r.URL.Path == "/latest/api/token" && r.Method == http.MethodPut:
		a.token(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead, r.URL.Path == "/latest/api/token":
		refuse(w, http.StatusMethodNotAllowed)
	case !a.good(r.Header.Get(tokenHeader)):
		refuse(w, http.StatusUnauthorized)
	case r.URL.Path != "/latest/user-data" || a.UserData == nil:
		refuse(w, http.StatusNotFound)
	default:
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(a.UserData)
	}
}

// token answers a request for a token.
func (a *AWS) token(w http.ResponseWriter, r *http.Request) {
	if r.Header.Values("X-Forwarded-For") != nil {
		refuse(w, http.StatusForbidden)
		return
	}
	ttl, err := strconv.Atoi(r.Header.Get(ttlHeader))
	if err != nil || ttl < 1 || ttl > maxTTL {
		refuse(w, http.StatusBadRequest)
		return
	}
	random := make([]byte, 40)
	_, _ = rand.Read(random) // It never fails.
	token := base64.StdEncoding.EncodeToString(random)
	a.mu.Lock()
	if a.tokens == nil {
		a.tokens = map[string]time.Time{}
	}
	a.tokens[token] = time.Now().Add(time.Duration(ttl) * time.Second)
	a.mu.Unlock()
	setHops(r, max(a.HopLimit, 1))
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set(ttlHeader, strconv.Itoa(ttl))
	_, _ = io.WriteString(w, token)
}

// good tells whether a token may be used now.
func (a *AWS) good(token string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Now().Before(a.tokens[token])
}

// setHops sets how many hops what is sent next on a request's connection may go.
func setHops(r *http.Request, hops int) {
	conn, ok := r.Context().Value(connection{}).(*net.TCPConn)
	if !ok {
		return
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return // The connection has ended.
	}
	_ = raw.Control(func(fd uintptr) {
		// The one of the other protocol fails.
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_TTL, hops)
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS, hops)
	})
}

// refuse answers with a status and a page about it.
func refuse(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, "<html><body><h1>"+strconv.Itoa(status)+" - "+http.StatusText(status)+"</h1></body></html>\n")
}
