// Package enroll lets a node that belongs to no cluster be made a member of one, by
// somebody who proves to have read the code on its console.
package enroll

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/api/proof"
	"powercloud.unidatum.com/go/api/route"
	"powercloud.unidatum.com/go/api/server"
	"powercloud.unidatum.com/go/cluster/volumeid"
	"powercloud.unidatum.com/go/pki"
)

// Config is what a Desk works with.
type Config struct {
	// Key is the node's, of Ed25519.
	Key crypto.Signer
	// Version is what it runs, and Disk whether it has a disk for its state.
	Version string
	Disk    bool
	// Join makes the node a member. It is called once at a time, with a request whose
	// sender knew the code.
	Join func(context.Context, *message.Enrollment) (*message.Enrolled, error)
	// Random is a cryptographically secure source.
	Random io.Reader
	Log    *slog.Logger
}

// Desk takes the enrollment of one node.
type Desk struct {
	config  Config
	code    proof.Code
	offer   message.Offer
	joining sync.Mutex
	// comparing is taken by whoever's code is compared.
	comparing chan struct{}
	// wrong counts the wrong codes.
	wrong atomic.Uint64
}

// New returns a desk with a new code.
func New(config Config) (*Desk, error) {
	public, ok := config.Key.Public().(ed25519.PublicKey)
	if !ok {
		return nil, errors.New("the node's key isn't one of Ed25519")
	}
	fingerprint, err := pki.FingerprintOf(public)
	if err != nil {
		return nil, err
	}
	d := &Desk{config: config, code: proof.Code{Fingerprint: fingerprint}, comparing: make(chan struct{}, 1),
		offer: message.Offer{ID: fingerprint.NodeID(), Key: public, Architecture: runtime.GOARCH, Version: config.Version, Disk: config.Disk}}
	if _, err := io.ReadFull(config.Random, d.code.Secret[:]); err != nil {
		return nil, fmt.Errorf("make an enrollment code: %w", err)
	}
	return d, nil
}

// Code returns what the console shows.
func (d *Desk) Code() string { return d.code.Text() }

// ID returns the node's ID.
func (d *Desk) ID() pki.NodeID { return d.offer.ID }

// Handlers returns what answers in the state [route.Blank].
func (d *Desk) Handlers() *server.Handlers {
	h := server.NewHandlers()
	server.Handle(h, route.GetOffer(), func(ctx context.Context, caller server.Caller, _ *message.None) (*message.Offer, error) {
		if err := d.admit(ctx, caller); err != nil {
			return nil, err
		}
		return &d.offer, nil
	})
	server.Handle(h, route.Enroll(), d.enroll)
	return h
}

// pause is how long no other code is compared after a wrong one. So there are 1,000 guesses
// a second at most, wherever they come from. It is short, as those who know the code wait
// for it too: the API lets 64 requests at a time in, and they have their turn in the order
// in which they came.
const pause = time.Millisecond

// admit returns an error unless the caller knows the code.
func (d *Desk) admit(ctx context.Context, caller server.Caller) error {
	select {
	case d.comparing <- struct{}{}:
	case <-ctx.Done():
		// Anybody can have come and gone: it is no failure of the node's to log.
		return message.Errorf(message.CodeBusy, "other enrollment codes are being compared; try again")
	}
	if caller.Proof.Knows(&d.code) {
		<-d.comparing
		return nil
	}
	time.AfterFunc(pause, func() { <-d.comparing })
	// Fewer lines the more there are: nobody can fill the log with them.
	if wrong := d.wrong.Add(1); wrong&(wrong-1) == 0 {
		d.config.Log.Warn("an enrollment was refused: the code was wrong", "from", caller.Address, "times", wrong)
	}
	return message.Errorf(message.CodeProof, "the node doesn't accept the enrollment code")
}

func (d *Desk) enroll(ctx context.Context, caller server.Caller, request *message.Enrollment) (*message.Enrolled, error) {
	defer request.Wipe()
	if err := d.admit(ctx, caller); err != nil {
		return nil, err
	}
	if request.Volume == (volumeid.ID{}) || request.VolumeKey == (message.Key{}) {
		// What is missing was read as zeros.
		return nil, message.Errorf("", "the enrollment has no volume ID or no key for it")
	}
	if !d.joining.TryLock() {
		return nil, message.Errorf(message.CodeBusy, "another enrollment of the node is under way; try again")
	}
	defer d.joining.Unlock()
	// Who began to enroll it can go: what was begun is finished.
	return d.config.Join(context.WithoutCancel(ctx), request)
}
