package nodes

import (
	"crypto/ed25519"
	"crypto/x509"
	"time"

	"powercloud.unidatum.com/go/admin/command"
	"powercloud.unidatum.com/go/pki"
)

// envLifetime is the environment variable that shortens the certificates that nodes get,
// for tests.
const envLifetime = "POWERCLOUD_TEST_NODE_CERT_LIFETIME"

// nodeLifetime returns how long a node's certificate is valid. A command that issues one
// asks before it does anything: a lifetime that can't be is a usage error.
func (g *group) nodeLifetime() (time.Duration, error) {
	text := g.Env.Getenv(envLifetime)
	if text == "" {
		return pki.NodeLifetime, nil
	}
	lifetime, err := time.ParseDuration(text)
	if err != nil || lifetime < time.Second || lifetime > pki.NodeLifetime {
		return 0, command.Usagef("%s is %q and not a duration of 1s to %s", envLifetime, text, pki.NodeLifetime)
	}
	return lifetime, nil
}

// issueNode issues a certificate for a node's key, as from a moment.
func (c *cluster) issueNode(key ed25519.PublicKey, from time.Time) (*x509.Certificate, error) {
	lifetime, err := c.nodeLifetime()
	if err != nil {
		return nil, err
	}
	return c.ca.IssueNode(key, from, lifetime, c.Env.Rand)
}
