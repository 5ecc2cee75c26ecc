package lifecycle

import (
	"context"
	"errors"
	"fmt"

	"powercloud.unidatum.com/go/api/route"
	"powercloud.unidatum.com/go/api/server"
	"powercloud.unidatum.com/go/cluster/nodename"
	"powercloud.unidatum.com/go/node/unlock"
	"powercloud.unidatum.com/go/node/volume/header"
)

// locked waits until the state volume is open, and returns where its content is.
func (r *run) locked(ctx context.Context, owners []header.Owner) (folder string, err error) {
	if len(owners) == 0 {
		return "", errors.New("the state volume says nothing of whose it is")
	}
	done := make(chan struct{})
	desk, err := unlock.New(unlock.Config{Owners: owners, Random: r.Random, Log: r.Log, Open: func(key *header.Key) error {
		err := r.alone(func() error {
			if folder != "" {
				// The answer was lost to whoever opened it.
				return nil
			}
			opened, owner, err := r.place.Unlock(key)
			if err != nil {
				return err
			}
			r.Log.Info("the state volume is unlocked", "name", owner.Name, "volume", owner.Volume.String())
			folder = opened
			close(done)
			return nil
		})
		if err != nil {
			return err
		}
		return r.untilOpen()
	}})
	if err != nil {
		return "", err
	}
	certificate, err := server.SelfSigned(desk.Key(), r.Random)
	if err != nil {
		return "", err
	}
	// Whoever had the disk can have written the name, and somebody is to type it.
	name := owners[0].Name
	if nodename.Check(name) != nil {
		name = owners[0].Node.String()
	}
	notice := fmt.Sprintf("PowerCloud node %s (%s) is locked: its state volume is encrypted.\nOn your admin machine run: pcctl --repo ... node unlock %s\nunlock code: %s\n",
		name, owners[0].Node, name, desk.Code())
	if err := r.serve(ctx, mode(route.Locked, certificate, desk.Handlers()), notice); err != nil {
		return "", err
	}
	if err := r.wait(ctx, done); err != nil {
		return "", err
	}
	return folder, nil
}
