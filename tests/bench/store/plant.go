package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/open"
	"powercloud.unidatum.com/go/blob/quorum"
	"powercloud.unidatum.com/go/keys"
	"powercloud.unidatum.com/go/store/chunk"
	"powercloud.unidatum.com/go/store/manifest"
	"powercloud.unidatum.com/go/store/repository"
)

// envRecovery is the variable that pcctl takes a recovery key from.
const envRecovery = "POWERCLOUD_RECOVERY_KEY"

// listedName is the name of the i-th of many objects, and the path of the file
// that becomes one.
func listedName(i int) string { return fmt.Sprintf("%04d/%06d", i/100, i) }

// listedContent is what that object consists of.
func listedContent(i int) []byte { return fmt.Appendf(nil, "the line of object %d\n", i) }

// runPlant stores many objects of a line each in the cluster at some locations,
// as pcctl put would leave them, but without making sure of anything on the way:
// a million objects take minutes instead of hours. Without chunks, they can be
// listed and not read.
//
//	self plant NUMBER CHUNKS REPO
func runPlant(args []string) error {
	if len(args) != 3 {
		return errors.New("plant: wrong number of arguments")
	}
	number, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	withChunks, err := strconv.ParseBool(args[1])
	if err != nil {
		return err
	}
	p, err := newPlanter(args[2], withChunks)
	if err != nil {
		return err
	}
	var next atomic.Int64
	group, ctx := errgroup.WithContext(context.Background())
	for range 4 * runtime.GOMAXPROCS(0) {
		group.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= number {
					return nil
				}
				if err := p.plant(ctx, i); err != nil {
					return err
				}
			}
		})
	}
	return group.Wait()
}

// planter makes objects.
type planter struct {
	locations  []blob.Location
	chunks     *chunk.Sealer
	manifests  *manifest.Sealer
	withChunks bool
	now        time.Time
}

// newPlanter opens the cluster with the recovery key in the environment.
func newPlanter(repo string, withChunks bool) (*planter, error) {
	specs, err := blob.ParseList(repo)
	if err != nil {
		return nil, err
	}
	locations, err := open.Options{}.All(specs)
	if err != nil {
		return nil, err
	}
	set, err := quorum.New(locations, 0)
	if err != nil {
		return nil, err
	}
	headers, err := repository.Read(context.Background(), set)
	if err != nil {
		return nil, err
	}
	recovery, err := keys.ParseRecoveryKey(os.Getenv(envRecovery))
	if err != nil {
		return nil, err
	}
	unlocked, err := headers.Unlock(repository.Secret{Recovery: &recovery})
	if err != nil {
		return nil, err
	}
	defer unlocked.Root.Wipe()
	p := &planter{locations: locations, withChunks: withChunks, now: time.Now()}
	if p.chunks, err = chunk.NewSealer(unlocked.Root); err != nil {
		return nil, err
	}
	p.manifests, err = manifest.NewSealer(unlocked.Root)
	return p, err
}

// plant stores one object at every location.
func (p *planter) plant(ctx context.Context, i int) error {
	content := listedContent(i)
	ref := p.chunks.Identify(content)
	m := &manifest.Manifest{Name: listedName(i), Size: int64(len(content)), FileTime: p.now.UnixNano(), FileMode: 0o644,
		Chunks: []chunk.Ref{ref}}
	var err error
	if m.Version, err = m.Version.Next(p.now, rand.Reader); err != nil {
		return err
	}
	sealed, err := p.manifests.Seal(m, rand.Reader)
	if err != nil {
		return err
	}
	if p.withChunks {
		name := p.chunks.Name(ref)
		if err := p.put(ctx, name, p.chunks.Seal(nil, name, content)); err != nil {
			return err
		}
	}
	return p.put(ctx, p.manifests.BlobName(m.Name), sealed)
}

func (p *planter) put(ctx context.Context, name blob.Name, data []byte) error {
	for _, location := range p.locations {
		if err := location.Put(ctx, name, data); err != nil {
			return err
		}
	}
	return nil
}
