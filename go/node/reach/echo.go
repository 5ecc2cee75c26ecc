package reach

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"

	"powercloud.unidatum.com/go/api/message"
)

const (
	// tokenSize is how many random bytes an echo request has. Nobody who hasn't seen
	// the request can answer it.
	tokenSize = 16
	// maxPacket is how many bytes of a packet are read: as many as an answer has, and
	// some more.
	maxPacket = 512
)

// family is a version of ICMP, and what the kernel calls what belongs to it.
type family struct {
	domain, protocol int
	request, reply   icmp.Type
	// level and receiveErrors name the option by which errors that come from the
	// network are reported to a socket at once.
	level, receiveErrors int
}

var (
	version4 = family{unix.AF_INET, unix.IPPROTO_ICMP, ipv4.ICMPTypeEcho, ipv4.ICMPTypeEchoReply, unix.IPPROTO_IP, unix.IP_RECVERR}
	version6 = family{unix.AF_INET6, unix.IPPROTO_ICMPV6, ipv6.ICMPTypeEchoRequest, ipv6.ICMPTypeEchoReply, unix.IPPROTO_IPV6, unix.IPV6_RECVERR}
)

// familyOf returns the version of an address.
func familyOf(a netip.Addr) family {
	if a.Is4() {
		return version4
	}
	return version6
}

// echo sends echo requests to an address, one after the other.
func (p Prober) echo(ctx context.Context, to netip.Addr) []message.PingTry {
	wait := cmp.Or(p.echoWait, echoWait)
	begin := time.Now()
	conn, err := p.open(familyOf(to), to)
	if err != nil {
		return []message.PingTry{{Duration: time.Since(begin), Error: reason(ctx, err, wait)}}
	}
	defer conn.Close()
	// What is being read ends with ctx.
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	var tries []message.PingTry
	for sequence := range echoes {
		begin := time.Now()
		err := exchange(conn, familyOf(to), sequence, begin.Add(wait))
		tries = append(tries, message.PingTry{Duration: time.Since(begin), Error: reason(ctx, err, wait)})
		if ctx.Err() != nil {
			break
		}
	}
	return tries
}

// open returns a socket for echo requests to an address: one of those that the kernel
// lets any program have, if it does (ping_group_range, icmp(7)), or else one for raw
// packets, which takes a privilege.
//
// It is connected, so that it gets the packets of one host alone, and the errors that
// the network reports of packets to it. It is made by hand because package icmp has
// only unconnected ones, which don't get the errors.
func (p Prober) open(f family, to netip.Addr) (net.Conn, error) {
	kinds := p.sockets
	if kinds == nil {
		kinds = []int{unix.SOCK_DGRAM, unix.SOCK_RAW}
	}
	var conn net.Conn
	var err error
	for _, kind := range kinds {
		conn, err = openKind(f, kind, to)
		if !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EPERM) {
			break
		}
	}
	return conn, err
}

func openKind(f family, kind int, to netip.Addr) (net.Conn, error) {
	fd, err := unix.Socket(f.domain, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, f.protocol)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	file := os.NewFile(uintptr(fd), "icmp")
	// FileConn makes a copy.
	defer file.Close()
	if err := unix.SetsockoptInt(fd, f.level, f.receiveErrors, 1); err != nil {
		return nil, os.NewSyscallError("setsockopt", err)
	}
	var remote unix.Sockaddr = &unix.SockaddrInet6{Addr: to.As16()}
	if to.Is4() {
		remote = &unix.SockaddrInet4{Addr: to.As4()}
	}
	if err := unix.Connect(fd, remote); err != nil {
		return nil, os.NewSyscallError("connect", err)
	}
	return net.FileConn(file)
}

// exchange sends an echo request and awaits its answer.
func exchange(conn net.Conn, f family, sequence int, deadline time.Time) error {
	token := make([]byte, tokenSize)
	_, _ = rand.Read(token) // It never fails.
	// The kernel puts an ID of its own into a request that isn't sent raw.
	request := icmp.Message{Type: f.request, Body: &icmp.Echo{ID: os.Getpid() & 0xffff, Seq: sequence, Data: token}}
	// The kernel computes the checksum of ICMPv6, of which addresses are a part.
	packet, err := request.Marshal(nil)
	if err != nil {
		return err
	}
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}
	if _, err := conn.Write(packet); err != nil {
		return err
	}
	buffer := make([]byte, maxPacket)
	for {
		n, err := read(conn, buffer)
		if err != nil {
			return err
		}
		if answers(buffer[:n], f, sequence, token) {
			return nil
		}
		// A host can send without end what is no answer.
		if !time.Now().Before(deadline) {
			return errSilent
		}
	}
}

// read reads a packet without the IPv4 header, which raw sockets have and
// ReadFrom takes off.
func read(conn net.Conn, buffer []byte) (int, error) {
	if from, ok := conn.(net.PacketConn); ok {
		n, _, err := from.ReadFrom(buffer)
		return n, err
	}
	return conn.Read(buffer)
}

// answers tells whether a packet is the answer to the request with a sequence number
// and a token. Other packets come too: raw sockets get all of ICMP from the host.
func answers(packet []byte, f family, sequence int, token []byte) bool {
	m, err := icmp.ParseMessage(f.protocol, packet)
	if err != nil || m.Type != f.reply {
		return false
	}
	echo, ok := m.Body.(*icmp.Echo)
	return ok && echo.Seq == sequence && bytes.Equal(echo.Data, token)
}
