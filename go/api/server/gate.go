package server

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// gate is a listener that lets connections in once their handshake is over. So whoever
// doesn't finish one takes no place of somebody who does.
type gate struct {
	net.Listener
	server *Server
	// strangers are those before the end of their handshakes, and admitted those after.
	strangers, admitted *crowd
	ready               chan *connection
	ctx                 context.Context
	stop                context.CancelCauseFunc
	working             sync.WaitGroup
}

// newGate begins to let connections in.
func newGate(s *Server, listener net.Listener) *gate {
	g := &gate{Listener: listener, server: s,
		strangers: newCrowd(s.limits.Handshakes, s.limits.HandshakesEach),
		admitted:  newCrowd(s.limits.Connections, s.limits.ConnectionsEach),
		ready:     make(chan *connection)}
	// It ends with Close.
	g.ctx, g.stop = context.WithCancelCause(context.Background())
	g.working.Go(g.run)
	return g
}

// run accepts connections.
func (g *gate) run() {
	pause := time.Duration(0)
	for {
		conn, err := g.Listener.Accept()
		if err != nil {
			if g.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				g.stop(err)
				return
			}
			// Too many open files, for one, pass.
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			g.server.log.Warn("the API can't accept a connection", "err", err)
			select {
			case <-g.ctx.Done():
			case <-time.After(pause):
			}
			continue
		}
		pause = 0
		source := network(conn.RemoteAddr().String())
		g.strangers.add(conn, source)
		g.working.Go(func() { g.let(conn, source) })
	}
}

// let completes a connection's handshake and hands it on.
func (g *gate) let(conn net.Conn, source string) {
	mode := g.server.current()
	secure := tls.Server(conn, mode.config())
	ctx, cancel := context.WithTimeout(g.ctx, g.server.limits.Handshake)
	defer cancel()
	err := secure.HandshakeContext(ctx)
	if err != nil {
		g.server.log.Debug("a TLS handshake failed", "from", source, "err", err)
		linger(conn)
	}
	if !g.strangers.remove(conn) || err != nil {
		_ = conn.Close()
		return
	}
	caller := source
	if mode.Identify != nil {
		state := secure.ConnectionState()
		caller = string(state.PeerCertificates[0].RawSubjectPublicKeyInfo)
	}
	c := &connection{Conn: secure, gate: g, mode: mode, caller: caller}
	g.server.admit(c)
	select {
	case g.ready <- c:
	case <-g.ctx.Done():
		c.drop()
		g.server.track(c, http.StateClosed)
	}
}

// lingering is how long a client may take to hear why it isn't let in, and maxLingering
// how much it may send meanwhile, in bytes.
const (
	lingering    = time.Second
	maxLingering = 64 << 10
)

// linger lets a client hear what TLS told it last. With TLS 1.3 it has sent a request
// by then, as the handshake is over for it; if that were never read, the kernel would
// reset the connection, and the client might find no reason.
func linger(conn net.Conn) {
	half, ok := conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || conn.SetReadDeadline(time.Now().Add(lingering)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, conn, maxLingering)
}

// Accept returns the next connection whose handshake is over.
func (g *gate) Accept() (net.Conn, error) {
	select {
	case conn := <-g.ready:
		return conn, nil
	case <-g.ctx.Done():
		return nil, context.Cause(g.ctx)
	}
}

// Close ends the listener.
func (g *gate) Close() error {
	err := g.Listener.Close()
	g.stop(net.ErrClosed)
	return err
}

// wait waits for what the gate has begun.
func (g *gate) wait() {
	g.strangers.closeAll()
	g.working.Wait()
}
