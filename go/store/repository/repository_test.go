package repository_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"os"
	"slices"
	"testing"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/keys"
	"powercloud.unidatum.com/go/keys/keystest"
	"powercloud.unidatum.com/go/store/repository"
	"powercloud.unidatum.com/go/store/storetest"
)

const passphrase = "correct horse battery"

func TestInitThenUnlock(t *testing.T) {
	b := storetest.New(t, 2)
	cluster, recovery, err := repository.Init(context.Background(), b.Set(), []byte(passphrase), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	headers, err := repository.Read(context.Background(), b.Set())
	if err != nil {
		t.Fatal(err)
	}
	for title, secret := range map[string]repository.Secret{
		"passphrase":   {Passphrase: []byte(passphrase)},
		"recovery key": {Recovery: &recovery},
	} {
		repo, err := headers.Unlock(secret)
		if err != nil {
			t.Errorf("%s: %v", title, err)
		} else if repo.Cluster != cluster {
			t.Errorf("%s opened cluster %s, want %s", title, repo.Cluster, cluster)
		}
	}
	_, err = headers.Unlock(repository.Secret{Passphrase: []byte("something else entirely")})
	storetest.WantError(t, err, keys.ErrWrongKey)
	_, _, err = repository.Init(context.Background(), b.Set(), []byte(passphrase), rand.Reader)
	storetest.WantError(t, err, repository.ErrInitialized)
}

func TestInitRefusals(t *testing.T) {
	for title, c := range map[string]struct {
		prepare func(b *storetest.Testbed)
		words   []string
	}{
		"a header at one location": {func(b *storetest.Testbed) { b.WriteHeader(1, b.Cluster.Header) },
			[]string{"repository already initialized", "location-1"}},
		"a damaged header": {func(b *storetest.Testbed) { b.WriteHeader(0, make([]byte, 10_000)) },
			[]string{"repository already initialized", "location-0"}},
		"an unreachable location": {func(b *storetest.Testbed) { b.Spoil(1) },
			[]string{"checking for an existing cluster", "location-1"}},
		"data without a header": {func(b *storetest.Testbed) { storetest.Put(t, b.Open(1), "x", []byte("x")) },
			[]string{"location-1", "key header is missing"}},
	} {
		t.Run(title, func(t *testing.T) {
			b := storetest.New(t, 2)
			c.prepare(b)
			_, _, err := repository.Init(context.Background(), b.Set(), []byte(passphrase), rand.Reader)
			storetest.WantError(t, err, nil, c.words...)
		})
	}
}

func TestReadWithoutAUsableHeader(t *testing.T) {
	b := storetest.New(t, 2)
	_, err := repository.Read(context.Background(), b.Set())
	storetest.WantError(t, err, repository.ErrNotInitialized)
	b.Spoil(1)
	_, err = repository.Read(context.Background(), b.Set())
	storetest.WantError(t, err, nil, "location-1")
	b.WriteHeader(0, []byte("not a header"))
	_, err = repository.Read(context.Background(), b.Set())
	storetest.WantError(t, err, nil, "location-0", "location-1")
}

// states returns the states of the key headers at all locations.
func states(b *storetest.Testbed) [3]repository.HeaderState {
	var found [3]repository.HeaderState
	for i, l := range b.Unlock().Locations {
		found[i] = l.State
	}
	return found
}

func TestHeaderStates(t *testing.T) {
	b := storetest.New(t, 3)
	b.Init()
	if got, want := states(b), [3]repository.HeaderState{}; got != want {
		t.Errorf("states %v, want %v", got, want)
	}
	b.WriteHeader(1, b.Cluster.Header[:50])
	if err := os.Remove(b.Paths[2] + "/header"); err != nil {
		t.Fatal(err)
	}
	want := [3]repository.HeaderState{repository.HeaderCurrent, repository.HeaderDamaged, repository.HeaderMissing}
	if got := states(b); got != want {
		t.Errorf("states %v, want %v", got, want)
	}
	b.Spoil(2)
	b.WriteHeader(1, keystest.Second(t).Header)
	want = [3]repository.HeaderState{repository.HeaderCurrent, repository.HeaderForeign, repository.HeaderUnreachable}
	if got := states(b); got != want {
		t.Errorf("states %v, want %v", got, want)
	}
}

func TestNewerHeaderOfTheSameRootWins(t *testing.T) {
	b := storetest.New(t, 3)
	b.Init()
	header, err := keys.ParseHeader(b.Cluster.Header)
	if err != nil {
		t.Fatal(err)
	}
	newer, err := header.WithSlots(b.Cluster.Root(t), header.Slots)
	if err != nil {
		t.Fatal(err)
	}
	b.WriteHeader(2, newer.Marshal())
	repo := b.Unlock()
	if !bytes.Equal(repo.Header, newer.Marshal()) {
		t.Error("the older header was chosen")
	}
	want := [3]repository.HeaderState{repository.HeaderStale, repository.HeaderStale, repository.HeaderCurrent}
	if got := states(b); got != want {
		t.Errorf("states %v, want %v", got, want)
	}
	if err := repo.Mixed(); err != nil {
		t.Error(err)
	}
}

// TestForeignLocationIsLeftAlone has one location of three with another
// cluster's header: nothing is written there, and the others go on.
func TestForeignLocationIsLeftAlone(t *testing.T) {
	b := storetest.New(t, 3)
	b.Init()
	b.WriteHeader(2, keystest.Second(t).Header)
	repo := b.Unlock()
	if err := repo.Set.NewWriter().Put(context.Background(), blob.Name{Kind: blob.KindChunk}, []byte("x")); err != nil {
		t.Errorf("two of three locations are not a quorum: %v", err)
	}
	if n := len(b.Blobs(2, blob.KindChunk)); n != 0 {
		t.Errorf("%d chunks were written to a location of another cluster", n)
	}
	for _, reply := range repo.Set.GetEach(context.Background(), blob.Header(), 1<<10)[2:] {
		storetest.WantError(t, reply.Err, repository.ErrForeign)
	}
}

// changed returns a header that follows the cluster's, with a new recovery slot.
func changed(t *testing.T, b *storetest.Testbed) []byte {
	t.Helper()
	header, err := keys.ParseHeader(b.Cluster.Header)
	if err != nil {
		t.Fatal(err)
	}
	slot, _, err := header.NewRecoverySlot(rand.Reader, b.Cluster.Root(t), 9)
	if err != nil {
		t.Fatal(err)
	}
	next, err := header.WithSlots(b.Cluster.Root(t), append(slices.Clone(header.Slots), slot))
	if err != nil {
		t.Fatal(err)
	}
	return next.Marshal()
}

func TestTwoHeadersOfTheSameAgeConflict(t *testing.T) {
	b := storetest.New(t, 3)
	b.Init()
	if err := b.Unlock().Conflict(); err != nil {
		t.Error(err)
	}
	b.WriteHeader(0, changed(t, b))
	b.WriteHeader(2, changed(t, b))
	repo := b.Unlock()
	storetest.WantError(t, repo.Conflict(), nil, "location-0", "location-2", "same age")
	if err := repo.Mixed(); err != nil {
		t.Error(err)
	}
	// Everybody takes the same of the two for the cluster's, in whatever order
	// the locations are given.
	headers, err := repository.Read(context.Background(), b.Ordered(2, 1, 0))
	if err != nil {
		t.Fatal(err)
	}
	again, err := headers.Unlock(repository.Secret{Recovery: &b.Cluster.Recovery})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(again.Header, repo.Header) {
		t.Error("the order of the locations decides which header is chosen")
	}
	// A newer one ends the conflict.
	header, err := keys.ParseHeader(repo.Header)
	if err != nil {
		t.Fatal(err)
	}
	newer, err := header.WithSlots(b.Cluster.Root(t), header.Slots)
	if err != nil {
		t.Fatal(err)
	}
	b.WriteHeader(1, newer.Marshal())
	if err := b.Unlock().Conflict(); err != nil {
		t.Error(err)
	}
}

// TestSecretThatOpensTwoClusters: of two clusters that as many locations hold,
// none may be taken for the one that is meant.
func TestSecretThatOpensTwoClusters(t *testing.T) {
	b := storetest.New(t, 3)
	second := keystest.Second(t)
	unlock := func(secret repository.Secret) (*repository.Repository, error) {
		headers, err := repository.Read(context.Background(), b.Set())
		if err != nil {
			t.Fatal(err)
		}
		return headers.Unlock(secret)
	}
	secret := repository.Secret{Passphrase: []byte(second.Passphrase)}
	b.WriteHeader(0, b.Cluster.Header)
	b.WriteHeader(1, second.Header)
	_, err := unlock(secret)
	storetest.WantError(t, err, nil, "location-0", "location-1", "two clusters", "--repo")
	// A recovery key opens only one of them.
	if repo, err := unlock(repository.Secret{Recovery: &second.Recovery}); err != nil || repo.Cluster != second.ID {
		t.Errorf("the recovery key of the second cluster doesn't open it: %v", err)
	}
	b.WriteHeader(2, second.Header)
	if repo, err := unlock(secret); err != nil || repo.Cluster != second.ID {
		t.Errorf("the cluster of two locations of three isn't opened: %v", err)
	}
}
