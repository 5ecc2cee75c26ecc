package client

import (
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"net/http"

	"powercloud.unidatum.com/go/api/proof"
	"powercloud.unidatum.com/go/cluster/address"
	"powercloud.unidatum.com/go/pki"
)

// ErrFingerprint says that the node's key isn't the one whose fingerprint the code
// has: the code is wrong, or somebody else answers.
var ErrFingerprint = errors.New("node key does not match the code (wrong code or interception)")

// ErrMember says that the node is a member of a cluster already.
var ErrMember = errors.New("node is already enrolled in a cluster")

// Pinned connects to a node that is known by the fingerprint of its key. With a code,
// requests prove to know it. The client is for one request. Close it after use.
func Pinned(ctx context.Context, to address.Address, fingerprint pki.Fingerprint, code *proof.Code) (*Client, error) {
	asked := false
	config := &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: []string{"http/1.1"},
		// A node without a certificate of its cluster's signs one itself. What counts is
		// its key.
		InsecureSkipVerify: true,
		VerifyConnection:   func(state tls.ConnectionState) error { return pinned(&state, fingerprint) },
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			asked = true
			return new(tls.Certificate), nil
		},
	}
	connected, err := dial(ctx, to, config, dialTimeout)
	if err != nil {
		return nil, err
	}
	if asked {
		// Only a member asks who its callers are.
		_ = connected.Close()
		return nil, ErrMember
	}
	state := connected.ConnectionState()
	unused := make(chan *conn, 1)
	unused <- connected
	c := &Client{address: to, unused: unused, patience: dialTimeout, http: &http.Client{CheckRedirect: noRedirect,
		Transport: transport(func(context.Context) (*conn, error) {
			select {
			case connected := <-unused:
				return connected, nil
			default:
				return nil, errors.New("the connection with the node has ended")
			}
		})}}
	if code != nil {
		c.proof = func(r *http.Request, body []byte) error {
			binding, err := proof.Binding(&state)
			if err != nil {
				return err
			}
			mac, err := code.MAC(binding, r.URL.Path, body)
			if err != nil {
				return err
			}
			r.Header.Set(proof.Header, hex.EncodeToString(mac))
			return nil
		}
	}
	return c, nil
}

// pinned checks that a connection's other end has the key with a fingerprint.
func pinned(state *tls.ConnectionState, want pki.Fingerprint) error {
	if len(state.PeerCertificates) != 1 {
		return ErrFingerprint
	}
	key, ok := state.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
	if !ok {
		return ErrFingerprint
	}
	got, err := pki.FingerprintOf(key)
	if err != nil || !hmac.Equal(got[:], want[:]) {
		return ErrFingerprint
	}
	return nil
}
