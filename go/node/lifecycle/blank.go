package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/api/route"
	"powercloud.unidatum.com/go/api/server"
	"powercloud.unidatum.com/go/cluster/meshkey"
	"powercloud.unidatum.com/go/cluster/nodename"
	"powercloud.unidatum.com/go/node/enroll"
	"powercloud.unidatum.com/go/node/identity"
	"powercloud.unidatum.com/go/node/join"
	"powercloud.unidatum.com/go/node/state"
	"powercloud.unidatum.com/go/node/volume/header"
)

// errEnrolled is what somebody hears who comes second.
var errEnrolled = message.Errorf(message.CodeEnrolled, "node is already enrolled in a cluster")

// blank makes the node a member of a cluster, and returns where its state is then.
func (r *run) blank(ctx context.Context) (folder string, err error) {
	if folder, err = r.joinByBundle(ctx); folder != "" || err != nil {
		return folder, err
	}
	key, err := identity.NewKey(r.Random)
	if err != nil {
		return "", err
	}
	c := &console{run: r, key: key, done: make(chan struct{})}
	// What was begun goes on when the sender of the request is gone, but no longer than
	// the run.
	join := func(_ context.Context, request *message.Enrollment) (*message.Enrolled, error) {
		return c.join(ctx, request)
	}
	desk, err := enroll.New(enroll.Config{Key: key, Version: r.Version, Disk: r.place.Encrypts(), Join: join, Random: r.Random, Log: r.Log})
	if err != nil {
		return "", err
	}
	certificate, err := server.SelfSigned(key, r.Random)
	if err != nil {
		return "", err
	}
	notice := fmt.Sprintf("PowerCloud node %s is waiting to be enrolled.\nOn your admin machine run: pcctl node enroll\nenrollment code: %s\n", desk.ID(), desk.Code())
	if err := r.serve(ctx, mode(route.Blank, certificate, desk.Handlers()), notice); err != nil {
		return "", err
	}
	if err := c.await(ctx); err != nil {
		return "", err
	}
	return c.folder, nil
}

// console is an enrollment by somebody who has read the console.
type console struct {
	*run
	key *identity.Key

	// folder is where the node's state is, once there is some, and superseded whether a
	// better place has come before. Whoever is alone at the place may change them. done is
	// closed then.
	folder     string
	superseded bool
	done       chan struct{}
}

// await waits until the node has its state, or a better place for it, which gives
// errSuperseded. An enrollment that has begun comes first: a disk that appears then is
// used from the next start on.
func (c *console) await(ctx context.Context) error {
	looking, stop := context.WithCancel(ctx)
	defer stop()
	if place, ok := c.place.(state.Provisional); ok {
		go func() {
			if place.Superseded(looking) != nil {
				return
			}
			// It fails if the run has ended.
			_ = c.alone(func() error {
				if c.folder == "" {
					c.superseded = true
					close(c.done)
				}
				return nil
			})
		}()
	}
	if err := c.wait(ctx, c.done); err != nil {
		return err
	}
	if c.superseded {
		return errSuperseded
	}
	return nil
}

// join makes the node a member as a request says.
func (c *console) join(ctx context.Context, request *message.Enrollment) (*message.Enrolled, error) {
	if err := nodename.Check(request.Name); err != nil {
		return nil, message.Errorf("", "%v", err)
	}
	mesh, err := meshkey.New(c.Random)
	if err != nil {
		return nil, err
	}
	defer mesh.Wipe()
	i, err := identity.New(identity.Parts{Key: c.key, Name: request.Name, Certificate: request.Certificate, Authority: request.Authority,
		MeshKey: mesh, Volume: request.Volume})
	if err != nil {
		return nil, message.Errorf("", "%v", err)
	}
	key := header.Key(request.VolumeKey)
	defer key.Wipe()
	err = c.alone(func() error {
		switch {
		case c.superseded:
			return errGone
		case c.folder != "":
			return errEnrolled
		}
		folder, err := c.settle(ctx, i, &key)
		if err != nil {
			return err
		}
		c.Log.Info("enrolled from the console", "name", request.Name, "cluster", i.Self.Cluster.String())
		c.folder = folder
		close(c.done)
		return nil
	})
	if err == nil {
		err = c.untilOpen()
	}
	if err != nil {
		// An admin reads it, who has proved to know the code.
		return nil, err
	}
	return &message.Enrolled{Encrypted: c.place.Encrypts()}, nil
}

// bundlePatience is how long a join bundle waits for a state disk that may be slow to
// come. The node would be a member without it otherwise, under the ID of the one on it.
const bundlePatience = 30 * time.Second

// outlast waits for a better place, if there may be one, and gives errSuperseded once
// there is.
func (r *run) outlast(ctx context.Context) error {
	place, ok := r.place.(state.Provisional)
	if !ok {
		return nil
	}
	r.Log.Info("the join bundle waits for a state disk", "at_most", bundlePatience)
	waiting, cancel := context.WithTimeout(ctx, bundlePatience)
	defer cancel()
	if place.Superseded(waiting) == nil {
		return errSuperseded
	}
	return ctx.Err()
}

// settle makes a place for the node's state and puts its identity there.
func (r *run) settle(ctx context.Context, i *identity.Identity, key *header.Key) (folder string, err error) {
	owner := header.Owner{Volume: i.Volume, Node: i.Self.Node, Name: i.Name()}
	return r.place.Create(ctx, owner, key, func(folder string) error {
		_, err := identity.Install(folder, i)
		return err
	})
}

// joinByBundle makes the node a member if it has a join bundle. Without one, or with
// one that is no good, it returns "".
func (r *run) joinByBundle(ctx context.Context) (folder string, err error) {
	bundle, err := r.Bundle(ctx, identity.CheckBundle)
	if errors.Is(err, join.ErrNone) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer bundle.Wipe()
	if err := r.outlast(ctx); err != nil {
		return "", err
	}
	i, err := identity.FromBundle(bundle)
	if err == nil {
		// What is at work later is what was put at the place.
		defer i.Wipe()
		key := header.Key(bundle.VolumeKey)
		defer key.Wipe()
		err = r.alone(func() error {
			folder, err = r.settle(ctx, i, &key)
			return err
		})
	}
	if err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		r.Log.Warn("join bundle not installed", "err", err)
		return "", nil
	}
	r.Log.Info("joined the cluster with a join bundle", "name", i.Name(), "cluster", i.Self.Cluster.String())
	return folder, nil
}
