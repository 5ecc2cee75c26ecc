// Package unlock lets an admin open a node's state volume after a restart, with a code
// that the node's console shows.
//
// The node's certificate and key are on the volume. So a locked node makes a key for the
// time until it is open, and the code is that key's fingerprint.
package unlock

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"

	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/api/route"
	"powercloud.unidatum.com/go/api/server"
	"powercloud.unidatum.com/go/keys/code"
	"powercloud.unidatum.com/go/node/volume/header"
	"powercloud.unidatum.com/go/pki"
)

// Config is what a Desk works with.
type Config struct {
	// Owners are whose the volume is, as the copies of its header say, at least one. One of
	// them can be forged.
	Owners []header.Owner
	// Open opens the volume. It is called once at a time. A wrong key gives
	// header.ErrWrongKey.
	Open func(*header.Key) error
	// Random is a cryptographically secure source.
	Random io.Reader
	Log    *slog.Logger
}

// Desk takes the key of one node's volume.
type Desk struct {
	config Config
	key    ed25519.PrivateKey
	code   string
	// opening is taken while the volume is being opened. Who waits for it does so in the
	// order of coming.
	opening chan struct{}
	// wrong counts the wrong keys. It belongs to who is opening.
	wrong uint64
}

// New returns a desk with a new code.
func New(config Config) (*Desk, error) {
	public, private, err := ed25519.GenerateKey(config.Random)
	if err != nil {
		return nil, fmt.Errorf("make a key to be unlocked with: %w", err)
	}
	fingerprint, err := pki.FingerprintOf(public)
	if err != nil {
		return nil, err
	}
	return &Desk{config: config, key: private, code: code.Format(fingerprint[:]), opening: make(chan struct{}, 1)}, nil
}

// Code returns what the console shows.
func (d *Desk) Code() string { return d.code }

// Key returns the key that the code is of.
func (d *Desk) Key() ed25519.PrivateKey { return d.key }

// Handlers returns what answers in the state [route.Locked].
func (d *Desk) Handlers() *server.Handlers {
	h := server.NewHandlers()
	server.Handle(h, route.GetLock(), func(context.Context, server.Caller, *message.None) (*message.Lock, error) {
		first := lock(d.config.Owners[0])
		for _, other := range d.config.Owners[1:] {
			first.Others = append(first.Others, lock(other))
		}
		return &first, nil
	})
	server.Handle(h, route.Unlock(), d.unlock)
	return h
}

func lock(o header.Owner) message.Lock {
	return message.Lock{ID: o.Node, Name: o.Name, Volume: o.Volume}
}

func (d *Desk) unlock(ctx context.Context, caller server.Caller, request *message.Unlock) (*message.None, error) {
	defer request.Wipe()
	if !slices.ContainsFunc(d.config.Owners, func(o header.Owner) bool { return o.Volume == request.Volume }) {
		return nil, message.Errorf(message.CodeUnlock, "the key is for the volume %s, and this one is %s", request.Volume, d.config.Owners[0].Volume)
	}
	// Anyone can try a key, and would keep an admin out who had to find a moment without.
	select {
	case d.opening <- struct{}{}:
	case <-ctx.Done():
		return nil, message.Errorf(message.CodeBusy, "somebody else is unlocking the node; try again")
	}
	defer func() { <-d.opening }()
	key := header.Key(request.VolumeKey)
	defer key.Wipe()
	err := d.config.Open(&key)
	switch {
	case errors.Is(err, header.ErrWrongKey):
		// Fewer lines the more there are: nobody can fill the log with them.
		if d.wrong++; d.wrong&(d.wrong-1) == 0 {
			d.config.Log.Warn("an unlock was refused: the key doesn't open the volume", "from", caller.Address, "times", d.wrong)
		}
		return nil, message.Errorf(message.CodeUnlock, "%v", err)
	case err != nil:
		return nil, err
	}
	return new(message.None), nil
}
