package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"powercloud.unidatum.com/go/cluster/address"
)

// conn is a connection with a node that remembers why the node ended it. With TLS 1.3
// the client has done its part of the handshake, and may be writing a request, when it
// comes to hear that its certificate isn't accepted. That its write failed says less.
type conn struct {
	*tls.Conn

	once sync.Once
	// heard is closed when the node has sent something, or the connection has ended, and
	// refused is set before that if the node has ended it for the certificate.
	heard   chan struct{}
	refused error
}

// dial connects to a node.
func dial(ctx context.Context, to address.Address, config *tls.Config, patience time.Duration) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	plain, err := new(net.Dialer).DialContext(ctx, "tcp", to.String())
	if err != nil {
		return nil, err
	}
	return handshake(ctx, plain, to, config)
}

// handshake makes a connection one with a node.
func handshake(ctx context.Context, plain net.Conn, to address.Address, config *tls.Config) (*conn, error) {
	secure := tls.Client(plain, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = plain.Close()
		if errors.Is(err, context.DeadlineExceeded) {
			// As when there is no connection at all.
			err = fmt.Errorf("TLS handshake with %s: %w", to, os.ErrDeadlineExceeded)
		}
		return nil, err
	}
	return &conn{Conn: secure, heard: make(chan struct{})}, nil
}

// Read reads what the node sends.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.once.Do(func() {
		c.refused = refusal(err)
		close(c.heard)
	})
	return n, err
}

// lastWord is how long the reason may be on its way after a write has failed.
const lastWord = time.Second

// Write writes to the node. Somebody must be reading meanwhile, as Go's HTTP client is.
func (c *conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err == nil {
		return n, nil
	}
	late := time.NewTimer(lastWord)
	defer late.Stop()
	select {
	case <-c.heard:
		if c.refused != nil {
			err = c.refused
		}
	case <-late.C:
	}
	return n, err
}

// certificateAlerts are what TLS 1.3 says of a certificate that isn't accepted (RFC
// 8446, section 6).
const (
	alertBadCertificate      tls.AlertError = 42
	alertUnsupported         tls.AlertError = 43
	alertCertificateRevoked  tls.AlertError = 44
	alertCertificateExpired  tls.AlertError = 45
	alertCertificateUnknown  tls.AlertError = 46
	alertUnknownCA           tls.AlertError = 48
	alertAccessDenied        tls.AlertError = 49
	alertCertificateRequired tls.AlertError = 116
)

// refusal returns ErrRefused and what TLS says, if an error is that a certificate isn't
// accepted; otherwise nil.
func refusal(err error) error {
	var remote *net.OpError
	if !errors.As(err, &remote) || remote.Op != "remote error" {
		return nil
	}
	for _, alert := range []tls.AlertError{alertBadCertificate, alertUnsupported, alertCertificateRevoked, alertCertificateExpired,
		alertCertificateUnknown, alertUnknownCA, alertAccessDenied, alertCertificateRequired} {
		// What a connection without QUIC returns has another type, which has no name.
		if remote.Err.Error() == alert.Error() {
			return fmt.Errorf("%w: %w", ErrRefused, alert)
		}
	}
	return nil
}
