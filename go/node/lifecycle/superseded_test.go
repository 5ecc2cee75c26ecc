package lifecycle_test

import (
	"context"
	"testing"

	"powercloud.unidatum.com/go/api/route"
	"powercloud.unidatum.com/go/keys/keystest"
	"powercloud.unidatum.com/go/node/lifecycle"
	"powercloud.unidatum.com/go/node/lifecycle/lifecycletest"
	"powercloud.unidatum.com/go/node/state"
	"powercloud.unidatum.com/go/node/state/statetest"
)

// lateDisk is a place in memory, until a disk comes.
type lateDisk struct {
	*statetest.Volume
	come chan struct{}
}

func (l lateDisk) Superseded(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-l.come:
		return nil
	}
}

// places has a node find each of some places in turn.
func places(c *lifecycle.Config, all ...state.Place) {
	c.Place = func(context.Context) (state.Place, error) {
		next := all[0]
		all = all[1:]
		return next, nil
	}
}

// TestLateDisk: a member's disk comes after its node has offered to be enrolled. The node
// is locked then, and nobody can enroll it any more.
func TestLateDisk(t *testing.T) {
	k, disk := newCluster(t, keystest.First(t)), newVolume(t)
	n := lifecycletest.Start(t, disk, nil)
	if _, err := k.enroll(n); err != nil {
		t.Fatal(err)
	}
	stopped(t, n)
	disk.Lock()

	memory := lateDisk{newVolume(t), make(chan struct{})}
	n = lifecycletest.Start(t, memory, func(c *lifecycle.Config) { places(c, memory, disk) })
	n.EnrollmentCode()
	close(memory.come)
	n.UnlockCode()
	if found, err := memory.Look(); err != nil || found.Condition != state.Blank {
		t.Errorf("in memory there is %+v, %v", found, err)
	}
	stopped(t, n)
}

// TestLateDiskOfAMember: who was enrolled without a disk goes on without.
func TestLateDiskOfAMember(t *testing.T) {
	k := newCluster(t, keystest.First(t))
	memory := lateDisk{newVolume(t), make(chan struct{})}
	n := lifecycletest.Start(t, memory, func(c *lifecycle.Config) { places(c, memory) })
	id, err := k.enroll(n)
	if err != nil {
		t.Fatal(err)
	}
	close(memory.come)
	do(t, k.member(n, id), route.GetMesh(), nil)
	stopped(t, n)
}

// TestBundleAndLateDisk: a join bundle waits for a disk.
func TestBundleAndLateDisk(t *testing.T) {
	k, disk := newCluster(t, keystest.First(t)), newVolume(t)
	memory := lateDisk{newVolume(t), make(chan struct{})}
	close(memory.come)
	n := lifecycletest.Start(t, memory, func(c *lifecycle.Config) {
		given(k.bundle(k))(c)
		places(c, memory, disk)
	})
	n.IsMember()
	if found, err := disk.Look(); err != nil || found.Condition != state.Open {
		t.Errorf("the disk has %+v, %v", found, err)
	}
	if found, err := memory.Look(); err != nil || found.Condition != state.Blank {
		t.Errorf("in memory there is %+v, %v", found, err)
	}
}
