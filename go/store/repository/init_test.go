package repository_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"testing"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
	"powercloud.unidatum.com/go/keys/keystest"
	"powercloud.unidatum.com/go/store/repository"
	"powercloud.unidatum.com/go/store/storetest"
)

// wantHeaders checks that all locations have the same header, and that it is one
// of those given.
func wantHeaders(t *testing.T, b *storetest.Testbed, oneOf ...[]byte) {
	t.Helper()
	for i, path := range b.Paths {
		header, err := os.ReadFile(path + "/header")
		if err != nil || !slices.ContainsFunc(oneOf, func(one []byte) bool { return bytes.Equal(one, header) }) {
			t.Errorf("location %d has another header (%v)", i, err)
		}
		oneOf = [][]byte{header}
	}
}

// TestInitNeverReplacesAHeader has another init come and go after this one has
// looked whether there is a cluster.
func TestInitNeverReplacesAHeader(t *testing.T) {
	b := storetest.New(t, 3)
	var once sync.Once
	first, second := keystest.First(t).Header, keystest.Second(t).Header
	b.Wrap = func(_ int, location blob.Location) blob.Location {
		f := blobtest.NewFaulty(location)
		f.Hook(func(op blobtest.Op, _ blob.Name) {
			if op == blobtest.Put {
				once.Do(func() {
					b.Wrap = nil
					if err := repository.WriteHeaders(context.Background(), b.Set(), first); err != nil {
						t.Error(err)
					}
				})
			}
		})
		return f
	}
	err := repository.WriteHeaders(context.Background(), b.Set(), second)
	storetest.WantError(t, err, repository.ErrInitialized, "another init", "location-0")
	wantHeaders(t, b, first)
}

// TestInitsInOppositeOrder has two that name the locations the other way round
// go on in step.
func TestInitsInOppositeOrder(t *testing.T) {
	b := storetest.New(t, 3)
	var ready sync.WaitGroup
	ready.Add(2)
	b.Wrap = func(_ int, location blob.Location) blob.Location { return blobtest.NewFaulty(location) }
	orders := [][]int{{0, 1, 2}, {2, 1, 0}}
	headers := [][]byte{keystest.First(t).Header, keystest.Second(t).Header}
	results := make(chan error, len(orders))
	for i, order := range orders {
		set := b.Ordered(order...)
		var once sync.Once
		for _, location := range set.Locations() {
			location.(*blobtest.Faulty).Hook(func(op blobtest.Op, _ blob.Name) {
				if op == blobtest.Put {
					once.Do(func() { ready.Done(); ready.Wait() })
				}
			})
		}
		go func() {
			results <- repository.WriteHeaders(context.Background(), set, headers[i])
		}()
	}
	succeeded := 0
	for range orders {
		if err := <-results; err == nil {
			succeeded++
		} else if !errors.Is(err, repository.ErrInitialized) {
			t.Error(err)
		}
	}
	if succeeded != 1 {
		t.Errorf("%d of two succeeded, want one", succeeded)
	}
	wantHeaders(t, b, headers...)
}

func TestInitThatFailsTakesBackWhatItWrote(t *testing.T) {
	b := storetest.New(t, 3)
	b.Wrap = func(i int, location blob.Location) blob.Location {
		f := blobtest.NewFaulty(location)
		if i == 2 {
			f.Fail(blobtest.Put, nil)
		}
		return f
	}
	err := repository.WriteHeaders(context.Background(), b.Set(), keystest.First(t).Header)
	storetest.WantError(t, err, blobtest.ErrFault, "location-2")
	for _, path := range b.Paths {
		if _, err := os.Stat(path + "/header"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s still has a header (%v)", path, err)
		}
	}
}

// TestInitWhereNobodyCanTellWhoWasFirst: what a location without Create has lost
// by then is noticed at least.
func TestInitWhereNobodyCanTellWhoWasFirst(t *testing.T) {
	b := storetest.New(t, 2)
	var once sync.Once
	other := []byte("another's")
	b.Wrap = func(i int, location blob.Location) blob.Location {
		if i == 0 {
			return location
		}
		f := blobtest.NewFaulty(location)
		f.Hook(func(op blobtest.Op, _ blob.Name) {
			if op == blobtest.Flush {
				once.Do(func() { b.WriteHeader(0, other) })
			}
		})
		return simple{f}
	}
	err := repository.WriteHeaders(context.Background(), b.Set(), keystest.First(t).Header)
	storetest.WantError(t, err, repository.ErrInitialized, "location-0")
	if left, err := os.ReadFile(b.Paths[0] + "/header"); err != nil || string(left) != string(other) {
		t.Errorf("the other's header was not left alone: %q, %v", left, err)
	}
	if _, err := os.Stat(b.Paths[1] + "/header"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its own header was not taken back (%v)", err)
	}
}

// simple is a location that is no Creator.
type simple struct{ blob.Location }
