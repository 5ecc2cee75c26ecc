package repository_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"sync"
	"testing"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
	"powercloud.unidatum.com/go/keys"
	"powercloud.unidatum.com/go/keys/keystest"
	"powercloud.unidatum.com/go/store/repository"
	"powercloud.unidatum.com/go/store/storetest"
)

const newPassphrase = "another passphrase"

// openable reports whether a passphrase opens what the locations hold.
func openable(t *testing.T, b *storetest.Testbed, passphrase string, locations ...int) bool {
	t.Helper()
	headers, err := repository.Read(context.Background(), b.Set(locations...))
	if err != nil {
		t.Fatal(err)
	}
	repo, err := headers.Unlock(repository.Secret{Passphrase: []byte(passphrase)})
	if err == nil {
		repo.Root.Wipe()
		return true
	}
	storetest.WantError(t, err, keys.ErrWrongKey)
	return false
}

// header returns the key header that a location holds.
func header(t *testing.T, b *storetest.Testbed, location int) []byte {
	t.Helper()
	stored, err := os.ReadFile(b.Paths[location] + "/header")
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

func TestChangePassphrase(t *testing.T) {
	b := storetest.New(t, 2)
	b.Init()
	storetest.Put(t, b.Open(), "x", []byte("content"))
	if err := b.Unlock().ChangePassphrase(context.Background(), []byte(newPassphrase), rand.Reader); err != nil {
		t.Fatal(err)
	}
	if openable(t, b, b.Cluster.Passphrase) {
		t.Error("the old passphrase still opens it")
	}
	if !openable(t, b, newPassphrase) {
		t.Error("the new passphrase doesn't open it")
	}
	if !bytes.Equal(header(t, b, 0), header(t, b, 1)) {
		t.Error("the locations hold different headers")
	}
	// Unlock uses the recovery key, and the data is under the same root key.
	if got := b.Unlock(); got.Cluster != b.Cluster.ID {
		t.Errorf("the cluster is %s, not %s", got.Cluster, b.Cluster.ID)
	}
	storetest.WantContent(t, b.Open(), "x", []byte("content"))
}

func TestChangeRefusals(t *testing.T) {
	for title, c := range map[string]struct {
		prepare func(b *storetest.Testbed)
		words   []string
	}{
		"an unreachable location": {func(b *storetest.Testbed) { b.Spoil(1) }, []string{"needs every location", "location-1"}},
		"another cluster's location": {func(b *storetest.Testbed) { b.WriteHeader(1, keystest.Second(t).Header) },
			[]string{"needs every location", "location-1", "different cluster"}},
	} {
		t.Run(title, func(t *testing.T) {
			b := storetest.New(t, 2)
			b.Init()
			c.prepare(b)
			err := b.Unlock().ChangePassphrase(context.Background(), []byte(newPassphrase), rand.Reader)
			storetest.WantError(t, err, nil, c.words...)
			if !openable(t, b, b.Cluster.Passphrase, 0) {
				t.Error("the old passphrase opens nothing any more")
			}
		})
	}
	b := storetest.New(t, 1)
	b.Init()
	err := b.Unlock().ChangePassphrase(context.Background(), []byte("short"), rand.Reader)
	storetest.WantError(t, err, nil, "too short")
	if !openable(t, b, b.Cluster.Passphrase) {
		t.Error("the old passphrase opens nothing any more")
	}
}

// TestChangeThatALocationMisses has each location in turn fail while the header is
// written: the new passphrase is in force, and repair needs no more than it.
func TestChangeThatALocationMisses(t *testing.T) {
	for failing := range 3 {
		b := storetest.New(t, 3)
		b.Init()
		faulty := make([]*blobtest.Faulty, 3)
		b.Wrap = func(i int, location blob.Location) blob.Location {
			faulty[i] = blobtest.NewFaulty(location)
			return faulty[i]
		}
		repo := b.Unlock()
		faulty[failing].Fail(blobtest.Put, nil)
		err := repo.ChangePassphrase(context.Background(), []byte(newPassphrase), rand.Reader)
		var partial *repository.PartialChangeError
		if !errors.As(err, &partial) || len(partial.Failures) != 1 || partial.Failures[0].Location.String() != b.Paths[failing] {
			t.Fatalf("error %v, want that location %d missed it", err, failing)
		}
		b.Wrap = nil
		for location := range b.Paths {
			if bytes.Equal(header(t, b, location), repo.Header) == (location == failing) {
				t.Errorf("location %d, with %d failing, has the wrong header", location, failing)
			}
		}
	}
}

// TestUnlockFindsTheNewerHeader has a location that missed a change: whichever
// passphrase opens the cluster, the newer header is taken for its own.
func TestUnlockFindsTheNewerHeader(t *testing.T) {
	b := storetest.New(t, 3)
	b.Init()
	if err := b.Unlock().ChangePassphrase(context.Background(), []byte(newPassphrase), rand.Reader); err != nil {
		t.Fatal(err)
	}
	b.WriteHeader(0, b.Cluster.Header)
	for _, secret := range []string{newPassphrase, b.Cluster.Passphrase} {
		headers, err := repository.Read(context.Background(), b.Set())
		if err != nil {
			t.Fatal(err)
		}
		repo, err := headers.Unlock(repository.Secret{Passphrase: []byte(secret)})
		if err != nil {
			t.Fatal(err)
		}
		if got := repo.Locations[0].State; got != repository.HeaderStale || !bytes.Equal(repo.Header, header(t, b, 1)) {
			t.Errorf("the header that was missed is in state %v, not stale", got)
		}
	}
}

func TestChangeThatEveryLocationRefuses(t *testing.T) {
	b := storetest.New(t, 2)
	b.Init()
	b.Wrap = func(_ int, location blob.Location) blob.Location {
		faulty := blobtest.NewFaulty(location)
		faulty.Fail(blobtest.Put, nil)
		return faulty
	}
	err := b.Unlock().ChangePassphrase(context.Background(), []byte(newPassphrase), rand.Reader)
	storetest.WantError(t, err, blobtest.ErrFault, "nothing was changed", "location-0")
	b.Wrap = nil
	if !openable(t, b, b.Cluster.Passphrase) || openable(t, b, newPassphrase) {
		t.Error("something was changed")
	}
}

// TestChangeNextToAnother has the header at one location change after it was read.
func TestChangeNextToAnother(t *testing.T) {
	b := storetest.New(t, 2)
	b.Init()
	slow, quick := b.Unlock(), b.Unlock()
	if _, err := quick.AddRecoveryKey(context.Background(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	before := quick.Header
	err := slow.ChangePassphrase(context.Background(), []byte(newPassphrase), rand.Reader)
	storetest.WantError(t, err, repository.ErrContended)
	for location := range b.Paths {
		if !bytes.Equal(header(t, b, location), before) {
			t.Errorf("location %d: the other change was overwritten", location)
		}
	}
}

// TestChangeInStepWithAnother has both look at all locations before either writes:
// the slower must not replace what the other has been told is in force.
func TestChangeInStepWithAnother(t *testing.T) {
	b := storetest.New(t, 3)
	b.Init()
	quick := b.Unlock()
	var once sync.Once
	b.Wrap = func(_ int, location blob.Location) blob.Location {
		faulty := blobtest.NewFaulty(location)
		faulty.Hook(func(op blobtest.Op, name blob.Name) {
			if op == blobtest.Put && name == blob.Header() {
				once.Do(func() {
					if _, err := quick.AddRecoveryKey(context.Background(), rand.Reader); err != nil {
						t.Error(err)
					}
				})
			}
		})
		return faulty
	}
	slow := b.Unlock()
	b.Wrap = nil
	_, err := slow.AddRecoveryKey(context.Background(), rand.Reader)
	storetest.WantError(t, err, repository.ErrContended)
	// Its first write was under way already. The rest is as it was, and nobody
	// goes on before somebody has decided.
	for location := 1; location < 3; location++ {
		if !bytes.Equal(header(t, b, location), quick.Header) {
			t.Errorf("location %d: the other change was overwritten", location)
		}
	}
	storetest.WantError(t, b.Unlock().Conflict(), nil, "location-0", "location-1")
	_, err = b.Unlock().AddRecoveryKey(context.Background(), rand.Reader)
	storetest.WantError(t, err, nil, "same age")
}

func TestChangeMendsWhatLagsBehind(t *testing.T) {
	b := storetest.New(t, 3)
	b.Init()
	b.WriteHeader(1, b.Cluster.Header[:60])
	if err := os.Remove(b.Paths[2] + "/header"); err != nil {
		t.Fatal(err)
	}
	if err := b.Unlock().ChangePassphrase(context.Background(), []byte(newPassphrase), rand.Reader); err != nil {
		t.Fatal(err)
	}
	if got := states(b); got != [3]repository.HeaderState{} {
		t.Errorf("states %v, want all current", got)
	}
}

func TestAddRecoveryKey(t *testing.T) {
	b := storetest.New(t, 2)
	b.Init()
	var added []keys.RecoveryKey
	for range keys.MaxSlots - 2 {
		key, err := b.Unlock().AddRecoveryKey(context.Background(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		added = append(added, key)
	}
	_, err := b.Unlock().AddRecoveryKey(context.Background(), rand.Reader)
	storetest.WantError(t, err, nil, "as many as a key header holds")
	headers, err := repository.Read(context.Background(), b.Set())
	if err != nil {
		t.Fatal(err)
	}
	for i, key := range added {
		if _, err := headers.Unlock(repository.Secret{Recovery: &key}); err != nil {
			t.Errorf("recovery key %d: %v", i+1, err)
		}
	}
	if !openable(t, b, b.Cluster.Passphrase) {
		t.Error("the passphrase opens nothing any more")
	}
	// A passphrase can still be changed: it takes the place of the old one.
	if err := b.Unlock().ChangePassphrase(context.Background(), []byte(newPassphrase), rand.Reader); err != nil {
		t.Error(err)
	}
}
