// Package reach tries a node's network from the node, for pcctl node ping: it looks up
// a host, and sends echo requests to each of its addresses (ICMP, RFC 792 and RFC
// 4443), or connects to a TCP port on them.
package reach

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/cluster/address"
)

// Limit is how long all of it may take.
const Limit = 10 * time.Second

const (
	// maxAddresses is how many of a host's addresses are tried, all at once.
	maxAddresses = 8
	// echoes is how often an address is sent an echo request, if the ones before
	// were answered or not.
	echoes = 3
	// echoWait is for how long the answer to each is awaited.
	echoWait = 2 * time.Second
	// connectWait is for how long a connection is awaited: the kernel sends its first
	// packet again after one second and after three.
	connectWait = 5 * time.Second
	// maxError is how many bytes of an error's text are kept.
	maxError = 300
)

// errSilent says that nothing came back in time.
var errSilent = errors.New("no answer")

// Prober tries the network. The zero value is ready to use.
type Prober struct {
	// Lookup returns the addresses of a name; Go's own resolver, which asks the name
	// servers in /etc/resolv.conf, when nil.
	Lookup func(ctx context.Context, name string) ([]netip.Addr, error)

	// echoWait and connectWait are the constants of these names when 0.
	echoWait, connectWait time.Duration
	// sockets are the kinds of sockets for echo requests, the preferred one first;
	// datagram and then raw ones when nil.
	sockets []int
}

// Ping tries what the request names. It returns an error for a target that is none;
// that a host can't be reached is an answer. It takes no longer than Limit, and ends
// when ctx is done with what it has.
func (p Prober) Ping(ctx context.Context, request message.Ping) (message.Pinged, error) {
	host, port, err := parse(request.Target)
	if err != nil {
		return message.Pinged{}, err
	}
	ctx, stop := context.WithTimeout(ctx, Limit)
	defer stop()
	answer := message.Pinged{Addresses: []message.PingedAddress{}}
	addresses := p.lookup(ctx, host, &answer)
	tried := addresses[:min(len(addresses), maxAddresses)]
	answer.Untried = len(addresses) - len(tried)
	results := make([]message.PingedAddress, len(tried))
	var trying sync.WaitGroup
	for i, a := range tried {
		trying.Go(func() {
			results[i] = message.PingedAddress{Address: a, Tries: p.try(ctx, a, port)}
		})
	}
	trying.Wait()
	answer.Addresses = append(answer.Addresses, results...)
	return answer, nil
}

// parse reads HOST or HOST:PORT; the port is 0 without one.
func parse(target string) (host string, port uint16, err error) {
	if a, err := address.Parse(target, 0); err == nil {
		return a.Host(), a.Port(), nil
	}
	// If it has no port of its own, any is fine.
	a, err := address.Parse(target, address.APIPort)
	if err != nil {
		return "", 0, err
	}
	return a.Host(), 0, nil
}

// lookup returns the host's addresses, and puts into the answer how that went.
func (p Prober) lookup(ctx context.Context, host string, answer *message.Pinged) []netip.Addr {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}
	}
	look := p.Lookup
	if look == nil {
		look = func(ctx context.Context, name string) ([]netip.Addr, error) {
			return (&net.Resolver{PreferGo: true}).LookupNetIP(ctx, "ip", name)
		}
	}
	begin := time.Now()
	found, err := look(ctx, host)
	answer.Lookup = time.Since(begin)
	var addresses []netip.Addr
	for _, a := range found {
		addresses = append(addresses, a.Unmap())
	}
	if err == nil && len(addresses) == 0 {
		err = errors.New("the name has no addresses")
	}
	if err != nil {
		answer.LookupError = line(lookupFailure(err))
		return nil
	}
	return addresses
}

// lookupFailure leaves out of an error what whoever asked knows: that it was a lookup, and
// of which name.
func lookupFailure(err error) error {
	var dns *net.DNSError
	switch {
	case !errors.As(err, &dns):
		return err
	case dns.Server == "":
		return errors.New(dns.Err)
	}
	return fmt.Errorf("%s: %s", dns.Server, dns.Err)
}

func (p Prober) try(ctx context.Context, a netip.Addr, port uint16) []message.PingTry {
	if port != 0 {
		return []message.PingTry{p.connect(ctx, netip.AddrPortFrom(a, port))}
	}
	return p.echo(ctx, a)
}

// connect makes a TCP connection, on which nothing is sent.
func (p Prober) connect(ctx context.Context, to netip.AddrPort) message.PingTry {
	wait := cmp.Or(p.connectWait, connectWait)
	begin := time.Now()
	conn, err := (&net.Dialer{Timeout: wait}).DialContext(ctx, "tcp", to.String())
	try := message.PingTry{Duration: time.Since(begin)}
	if err == nil {
		err = conn.Close()
	}
	try.Error = reason(ctx, err, wait)
	return try
}

// reason says why a try failed; "" if it didn't. Wait is how long the try may have
// taken.
func reason(ctx context.Context, err error, wait time.Duration) string {
	var number unix.Errno
	switch {
	case err == nil:
		return ""
	case errors.As(err, &number):
		// What the node was about to do with which address is known.
		return number.Error()
	case over(ctx):
		return fmt.Sprintf("no answer in the time that was left of %v", Limit)
	case ctx.Err() != nil:
		return "stopped"
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.Is(err, errSilent):
		return fmt.Sprintf("%v within %v", errSilent, wait)
	}
	return line(err)
}

// over reports whether the time for all of it is over. A connection ends at that moment,
// which may be just before ctx does.
func over(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && !time.Now().Before(deadline)
}

// line makes one line of an error, in which names from the network may be.
func line(err error) string {
	text := strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
	if len(text) > maxError {
		text = strings.ToValidUTF8(text[:maxError], "") + "..."
	}
	return text
}
