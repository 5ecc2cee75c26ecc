// Package keystest has ready-made key headers for the tests of other packages.
//
// A header that keys.Create makes takes a second and 256 MiB to unlock, on
// purpose. Nothing but this package offers cheaper ones, so that none can be
// made outside a test; those here are fixed, their keys are public, and they
// open in no time.
package keystest

import (
	_ "embed" // for the headers
	"encoding/hex"
	"encoding/json"
	"testing"

	"powercloud.unidatum.com/go/keys"
)

//go:embed first.json
var firstJSON []byte

//go:embed second.json
var secondJSON []byte

// Cluster is a cluster that exists only as a key header.
type Cluster struct {
	// ID is the cluster's ID.
	ID keys.ClusterID
	// Passphrase and Recovery each open Header.
	Passphrase string
	Recovery   keys.RecoveryKey
	// Header is the key header, as keys.ParseHeader reads it: serial 1, one
	// slot for each secret.
	Header []byte
}

// First returns a cluster, the same one every time.
func First(t testing.TB) Cluster {
	t.Helper()
	return read(t, firstJSON)
}

// Second returns a cluster other than First's, with the same passphrase.
func Second(t testing.TB) Cluster {
	t.Helper()
	return read(t, secondJSON)
}

// Root unlocks the cluster's header.
func (c Cluster) Root(t testing.TB) *keys.Root {
	t.Helper()
	h, err := keys.ParseHeader(c.Header)
	if err != nil {
		t.Fatal(err)
	}
	root, err := h.UnlockRecovery(c.Recovery)
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func read(t testing.TB, data []byte) Cluster {
	t.Helper()
	var v struct {
		Passphrase  string `json:"passphrase"`
		RecoveryKey string `json:"recovery_key"`
		Cluster     string `json:"cluster"`
		Header      string `json:"header"`
	}
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	c := Cluster{Passphrase: v.Passphrase}
	var err error
	if c.ID, err = keys.ParseClusterID(v.Cluster); err != nil {
		t.Fatal(err)
	}
	if c.Recovery, err = keys.ParseRecoveryKey(v.RecoveryKey); err != nil {
		t.Fatal(err)
	}
	if c.Header, err = hex.DecodeString(v.Header); err != nil {
		t.Fatal(err)
	}
	return c
}
