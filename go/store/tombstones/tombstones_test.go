package tombstones_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/quorum"
	"powercloud.unidatum.com/go/store/manifest"
	"powercloud.unidatum.com/go/store/storetest"
	"powercloud.unidatum.com/go/store/tombstones"
)

var (
	first = tombstones.Key{1}
	noon  = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	one   = manifest.Version{Time: 1}
	two   = manifest.Version{Time: 2}
)

func keeper(t *testing.T, b *storetest.Testbed, indexes ...int) *tombstones.Keeper {
	t.Helper()
	k, err := tombstones.NewKeeper(b.Set(indexes...), b.Cluster.Root(t))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func enter(version manifest.Version, since time.Time) tombstones.Entries {
	return tombstones.Entries{first: {Version: version, Since: since}}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestSeenIsWhatAllRecordsHave(t *testing.T) {
	ctx, later := context.Background(), noon.Add(time.Hour)
	for title, c := range map[string]struct {
		other tombstones.Entries
		spoil func(b *storetest.Testbed)
		want  int
	}{
		"the same":        {other: enter(one, later), want: 1},
		"another version": {other: enter(two, noon)},
		"none":            {other: tombstones.Entries{}},
		"altered":         {other: enter(one, noon), spoil: func(b *storetest.Testbed) { b.Alter(b.Blobs(1, blob.KindRecord)...) }},
	} {
		t.Run(title, func(t *testing.T) {
			b := storetest.New(t, 2)
			must(t, keeper(t, b, 0).WriteSeen(ctx, enter(one, noon), rand.Reader))
			must(t, keeper(t, b, 1).WriteSeen(ctx, c.other, rand.Reader))
			if c.spoil != nil {
				c.spoil(b)
			}
			seen, err := keeper(t, b).Seen(ctx)
			must(t, err)
			if len(seen) != c.want || c.want == 1 && !seen[first].Since.Equal(later) {
				t.Errorf("seen are %v", seen)
			}
		})
	}
}

func TestRemovals(t *testing.T) {
	ctx := context.Background()
	b := storetest.New(t, 3)
	k := keeper(t, b)
	before, err := k.Removals(ctx)
	must(t, err)
	must(t, keeper(t, b, 0).WriteRemovals(ctx, enter(one, noon), rand.Reader))
	partly, err := k.RemovalsAtQuorum(ctx)
	must(t, err)
	if len(partly.Listed) != 1 || len(partly.Agreed) != 0 || partly.Same(before) {
		t.Errorf("listed are %v, agreed %v", partly.Listed, partly.Agreed)
	}
	must(t, k.WriteRemovals(ctx, enter(one, noon), rand.Reader))
	all, err := k.AllRemovals(ctx)
	must(t, err)
	if len(all.Listed) != 1 || len(all.Agreed) != 1 {
		t.Errorf("listed are %v, agreed %v", all.Listed, all.Agreed)
	}
	// Nothing in it again, but not as if nothing had been.
	must(t, k.WriteRemovals(ctx, nil, rand.Reader))
	after, err := k.Removals(ctx)
	must(t, err)
	if len(after.Listed) != 0 || after.Same(before) {
		t.Errorf("listed are %v, the same as before: %v", after.Listed, after.Same(before))
	}
	must(t, k.WriteRemovals(ctx, nil, rand.Reader))
	if again, err := k.Removals(ctx); err != nil || again.Same(after) {
		t.Errorf("an empty record that was written again passes for the same (%v)", err)
	}
}

func TestUnreachableLocations(t *testing.T) {
	ctx := context.Background()
	b := storetest.New(t, 3)
	k := keeper(t, b)
	must(t, k.WriteRemovals(ctx, enter(one, noon), rand.Reader))
	b.Spoil(1)
	_, err := k.Seen(ctx)
	storetest.WantError(t, err, nil, b.Paths[1]+" is unreachable")
	_, err = k.AllRemovals(ctx)
	storetest.WantError(t, err, nil, b.Paths[1]+" is unreachable")
	storetest.WantError(t, k.WriteSeen(ctx, nil, rand.Reader), nil, b.Paths[1]+" is unreachable")
	removals, err := k.RemovalsAtQuorum(ctx)
	must(t, err)
	if len(removals.Listed) != 1 || len(removals.Agreed) != 1 {
		t.Errorf("listed are %v, agreed %v", removals.Listed, removals.Agreed)
	}
	b.Spoil(2)
	_, err = k.RemovalsAtQuorum(ctx)
	var short *quorum.WriteError
	if !errors.As(err, &short) || short.Succeeded != 1 {
		t.Errorf("two of three don't answer: %v", err)
	}
}

func TestTooManyRemovalsAreRefused(t *testing.T) {
	many := tombstones.Entries{}
	for i := range tombstones.MaxRemovals + 1 {
		many[tombstones.Key{byte(i), byte(i >> 8)}] = tombstones.Entry{}
	}
	err := keeper(t, storetest.New(t, 1)).WriteRemovals(context.Background(), many, rand.Reader)
	storetest.WantError(t, err, nil, "4097", "4096")
}
