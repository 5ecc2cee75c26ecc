// Package join finds the join bundle with which a new node joins its cluster with
// nobody at its console.
//
// A bundle is a node's whole identity, issued ahead of time: its private keys, what
// the cluster's CA has signed for it, and the key of its state volume. It is given to
// the machine as a file of QEMU's fw_cfg device or as a cloud's user data, in a text
// that docs/formats.md describes.
//
// Finding it is for a node that has no identity. One that has ignores the bundle,
// which cloud user data keeps serving: its caller doesn't call Find. The caller also
// does what comes after Find. It creates the state volume, installs the identity, logs
// "joined the cluster with a join bundle" or "join bundle not installed", and wipes
// the bundle. Whatever goes wrong, the node waits for enrollment at its console.
package join

import (
	"context"
	"errors"
	"log/slog"

	"powercloud.unidatum.com/go/cluster/joinbundle"
	"powercloud.unidatum.com/go/sys/fwcfg"
	"powercloud.unidatum.com/go/sys/metadata"
	"powercloud.unidatum.com/go/sys/smbios"
)

// ErrNone says that there is no bundle for this node, and that it waits for enrollment
// at its console. Find has logged why.
var ErrNone = errors.New("no join bundle; waiting for console enrollment")

// Check looks into what is opaque in a bundle. It returns an error unless the bundle
// has a node certificate that the bundle's CA has issued for the bundle's key, and
// membership and revocation lists that this CA has signed, of which the first names
// the node and the second doesn't revoke it. Its error goes into the log: there is
// nothing secret in it.
type Check func(*joinbundle.Bundle) error

// Sources are where a bundle can be. What they return may be secret; Find clears it.
// None of them returns more than joinbundle.MaxSize+1 bytes: what is longer is no bundle.
// [Machine] has those of a machine.
type Sources struct {
	// Firmware returns the file that QEMU hands over; the error is fwcfg.ErrNone where
	// there is none.
	Firmware func() ([]byte, error)
	// Cloud tells which cloud the machine is in. It may do so with an error too.
	Cloud func() (smbios.Cloud, error)
	// Connected waits until it is worthwhile to ask a metadata service. It is called
	// only in a cloud.
	Connected func(ctx context.Context) error
	// UserData returns the user data of a machine in a cloud, after as many tries as
	// it takes; the error is metadata.ErrNone where there is none.
	UserData func(ctx context.Context, cloud smbios.Cloud) ([]byte, error)
}

// finder looks for a bundle.
type finder struct {
	sources Sources
	check   Check
	log     *slog.Logger
}

// Find looks for a bundle, first in QEMU's file, then in the user data of the cloud
// that the firmware names, if it names one: a machine anywhere else never waits. It
// returns the bundle if it is intact and passes the check, and the caller wipes it.
// The error is ErrNone otherwise, or ctx's.
func Find(ctx context.Context, sources Sources, check Check, log *slog.Logger) (*joinbundle.Bundle, error) {
	f := finder{sources, check, log}
	text, err := sources.Firmware()
	switch {
	case err == nil:
		if b, ours := f.judge(text, "QEMU's fw_cfg"); ours {
			return found(b)
		}
	case !errors.Is(err, fwcfg.ErrNone):
		log.Warn("could not read QEMU's fw_cfg file", "err", err)
	}
	cloud, err := sources.Cloud()
	if err != nil {
		log.Warn("could not read all that SMBIOS says of this machine", "err", err)
	}
	if cloud == smbios.None {
		return nil, ErrNone
	}
	return f.inCloud(ctx, cloud)
}

// inCloud looks for a bundle in a cloud's user data.
func (f finder) inCloud(ctx context.Context, cloud smbios.Cloud) (*joinbundle.Bundle, error) {
	if err := f.sources.Connected(ctx); err != nil {
		return nil, err
	}
	text, err := f.sources.UserData(ctx, cloud)
	switch {
	case ctx.Err() != nil:
		clear(text)
		return nil, ctx.Err()
	case errors.Is(err, metadata.ErrNone):
		f.log.Info("no user data; waiting for console enrollment", "cloud", string(cloud))
		return nil, ErrNone
	case err != nil:
		f.log.Warn("could not read user data; waiting for console enrollment", "cloud", string(cloud), "err", err)
		return nil, ErrNone
	}
	b, _ := f.judge(text, "user data of "+string(cloud))
	return found(b)
}

// found returns a bundle, or that there is none.
func found(b *joinbundle.Bundle) (*joinbundle.Bundle, error) {
	if b == nil {
		return nil, ErrNone
	}
	return b, nil
}

// judge reads a text from a source, and clears it. The second result tells whether it
// is meant to be a bundle: if so and it isn't a good one, the node looks no further.
func (f finder) judge(text []byte, source string) (b *joinbundle.Bundle, ours bool) {
	defer clear(text)
	if !joinbundle.LooksLike(text) {
		f.log.Info("this isn't a join bundle, and is ignored", "source", source, "bytes", len(text))
		return nil, false
	}
	b, err := joinbundle.Decode(text)
	if err == nil {
		if err = f.check(b); err != nil {
			b.Wipe()
		}
	}
	if err != nil {
		f.log.Warn("invalid join bundle; waiting for console enrollment", "source", source, "err", err)
		return nil, true
	}
	f.log.Info("found a join bundle", "source", source)
	return b, true
}
