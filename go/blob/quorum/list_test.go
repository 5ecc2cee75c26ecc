package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
	"powercloud.unidatum.com/go/blob/quorum"
)

// idName returns a chunk's name that begins with two bytes.
func idName(first, second byte) blob.Name {
	return blob.Name{Kind: blob.KindChunk, ID: [32]byte{first, second}}
}

func TestListEach(t *testing.T) {
	locations := []blob.Location{blobtest.NewMemory("a"), blobtest.NewMemory("b"), blobtest.NewMemory("c")}
	for i, names := range [][]blob.Name{{idName(0, 1), idName(7, 1), idName(7, 2)}, {idName(7, 1), idName(255, 9)}, {}} {
		for _, name := range names {
			if err := locations[i].Put(t.Context(), name, []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
	}
	set, err := quorum.New(locations, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	firsts := 0
	errs, err := set.ListEach(t.Context(), blob.KindChunk, nil, func(group quorum.Group) error {
		if int(group.First) != firsts {
			t.Errorf("group %d comes as number %d", group.First, firsts)
		}
		firsts++
		for i, listed := range group.Listed {
			for _, info := range listed {
				if info.Name.ID[0] != group.First {
					t.Errorf("%s is in the group of %d", info.Name, group.First)
				}
				got = append(got, fmt.Sprintf("%d:%d.%d", i, info.Name.ID[0], info.Name.ID[1]))
			}
		}
		return nil
	})
	if err != nil || errors.Join(errs...) != nil {
		t.Fatal(err, errs)
	}
	slices.Sort(got)
	want := []string{"0:0.1", "0:7.1", "0:7.2", "1:255.9", "1:7.1"}
	if firsts != 256 || !slices.Equal(got, want) {
		t.Errorf("%d groups with %q, want 256 with %q", firsts, got, want)
	}
}

// unordered is a location that lists names in the order in which they are given.
type unordered struct {
	blob.Location
	names []blob.Name
}

func (u unordered) List(_ context.Context, _ blob.Kind, fn func(blob.Info) error) error {
	for _, name := range u.names {
		if err := fn(blob.Info{Name: name}); err != nil {
			return err
		}
	}
	return nil
}

func TestListEachFaults(t *testing.T) {
	good := blobtest.NewMemory("good")
	if err := good.Put(t.Context(), idName(3, 3), []byte("x")); err != nil {
		t.Fatal(err)
	}
	failing := blobtest.NewFaulty(blobtest.NewMemory("failing"))
	failing.Fail(blobtest.List, nil)
	liar := unordered{blobtest.NewMemory("liar"), []blob.Name{idName(9, 0), idName(2, 0)}}
	set, err := quorum.New([]blob.Location{failing, good, liar, failing}, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	down := errors.New("down")
	errs, err := set.ListEach(t.Context(), blob.KindChunk, []error{3: down}, func(group quorum.Group) error {
		found += len(group.Listed[1])
		if !errors.Is(group.Failed[0], blobtest.ErrFault) || group.Failed[1] != nil || group.Failed[3] != down {
			t.Errorf("in group %d these have failed: %v", group.First, group.Failed)
		}
		// The liar's only group is cut short, so it isn't told.
		if group.Failed[2] == nil || group.Listed[2] != nil {
			t.Errorf("in group %d the liar lists %v, and failed: %v", group.First, group.Listed[2], group.Failed[2])
		}
		return nil
	})
	if err != nil || found != 1 {
		t.Errorf("%d blobs at the good location, %v", found, err)
	}
	if !errors.Is(errs[0], blobtest.ErrFault) || errs[1] != nil || errs[2] == nil || errs[3] != down {
		t.Errorf("the locations' errors are %v", errs)
	}

	// An error of the caller's ends it, and so does the context.
	broken := errors.New("broken")
	if _, err := set.ListEach(t.Context(), blob.KindChunk, nil, func(quorum.Group) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("error %v, want the caller's", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = set.ListEach(ctx, blob.KindChunk, nil, func(quorum.Group) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that it was cancelled", err)
	}
}
