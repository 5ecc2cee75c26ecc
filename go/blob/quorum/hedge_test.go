package quorum_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
	"powercloud.unidatum.com/go/blob/pace"
	"powercloud.unidatum.com/go/blob/quorum"
)

// deaf is a location that, once it stalls, doesn't notice that its caller gives up,
// as a directory on a disk that hangs.
type deaf struct{ blob.Location }

func (d deaf) Get(ctx context.Context, name blob.Name, buf []byte, limit int64) ([]byte, error) {
	return d.Location.Get(context.WithoutCancel(ctx), name, buf, limit)
}

// TestGetHedges: a location that stalls doesn't hold a read, and isn't asked first
// the next time.
func TestGetHedges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, at := three(t, 0)
		set, err := quorum.New([]blob.Location{deaf{at[0]}, at[1], at[2]}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := set.NewWriter().Put(t.Context(), name, []byte("data")); err != nil {
			t.Fatal(err)
		}
		at[0].Stall(blobtest.Get)
		at[1].Corrupt()
		get := func() time.Duration {
			t.Helper()
			start := time.Now()
			var got string
			err := set.Get(t.Context(), name, limit, func(data []byte) error {
				if got = string(data); got != "data" {
					return errors.New("altered")
				}
				return nil
			})
			if err != nil || got != "data" {
				t.Errorf("Get: %q, %v", got, err)
			}
			return time.Since(start)
		}
		if took := get(); took == 0 || took > pace.MostPatience {
			t.Errorf("the first read took %v", took)
		}
		if took := get(); took != 0 {
			t.Errorf("the next read took %v, though it is known who is slow", took)
		}
		// What the slow one reads into meanwhile is nobody's.
		closed := make(chan []quorum.Failure, 1)
		go func() { closed <- set.Close(context.Background()) }()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("Close returned while a location was being asked")
		default:
		}
		at[0].Heal()
		if failures := <-closed; len(failures) > 0 {
			t.Errorf("Close: %v", failures)
		}
		if n := at[0].Calls(blobtest.Get); n != 1 {
			t.Errorf("the slow location was asked %d times", n)
		}
	})
}

// TestGetWaits: a location that is slow serves all the same when no other can.
func TestGetWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, at := three(t, 1)
		if err := at[2].Put(t.Context(), name, []byte("data")); err != nil {
			t.Fatal(err)
		}
		at[0].Fail(blobtest.Get, nil)
		at[2].Stall(blobtest.Get)
		done := make(chan error, 1)
		go func() { done <- set.Get(t.Context(), name, limit, accept) }()
		time.Sleep(time.Hour)
		synctest.Wait()
		at[2].Heal()
		if err := <-done; err != nil {
			t.Errorf("Get: %v", err)
		}
	})
}

// TestGetEachHedged: all are waited for unless the set is hedged; then until a
// version that was acknowledged must be among the answers, and there is a copy.
func TestGetEachHedged(t *testing.T) {
	for title, c := range map[string]struct {
		hedged  bool
		stalled []int
		holders []int
		quorum  int
		waits   bool
	}{
		"nothing stalls":             {true, nil, []int{0}, 0, false},
		"not hedged":                 {false, []int{2}, []int{0, 1}, 0, true},
		"one of three stalls":        {true, []int{2}, []int{0, 1}, 0, false},
		"one copy is enough":         {true, []int{0}, []int{2}, 0, false},
		"two of three stall":         {true, []int{1, 2}, []int{0}, 0, true},
		"the only copy may be there": {true, []int{2}, nil, 0, true},
		"a write needs one":          {true, []int{2}, []int{0, 1}, 1, true},
		"a write needs all":          {true, []int{2}, []int{0}, 3, false},
		"others' writes need two":    {true, []int{1, 2}, []int{0}, 3, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			set, at := three(t, c.quorum)
			if c.hedged {
				set.Hedge()
			}
			for _, i := range c.holders {
				if err := at[i].Put(t.Context(), name, []byte("data")); err != nil {
					t.Fatal(err)
				}
			}
			for _, i := range c.stalled {
				at[i].Stall(blobtest.Get)
			}
			var replies []quorum.Reply
			go func() { replies = set.GetEach(t.Context(), name, limit) }()
			time.Sleep(time.Hour)
			synctest.Wait()
			if (replies == nil) != c.waits {
				t.Errorf("%s: after an hour there are %d replies", title, len(replies))
			}
			if !c.waits {
				for _, i := range c.stalled {
					if err := replies[i].Err; err != pace.ErrLate {
						t.Errorf("%s: reply %d is %v", title, i, err)
					}
				}
			}
			for _, location := range at {
				location.Heal()
			}
			synctest.Wait()
			if len(replies) != 3 {
				t.Errorf("%s: there are %d replies in the end", title, len(replies))
			}
			for _, i := range c.holders {
				if string(replies[i].Data) != "data" {
					t.Errorf("%s: reply %d is %q, %v", title, i, replies[i].Data, replies[i].Err)
				}
			}
		})
	}
}

// TestGetEachFailedBefore: of a location that isn't waited for it is said why, if that is
// known from a read before.
func TestGetEachFailedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, at := three(t, 0)
		set.Hedge()
		if err := set.NewWriter().Put(t.Context(), name, []byte("data")); err != nil {
			t.Fatal(err)
		}
		at[1].Fail(blobtest.Get, nil)
		before := set.GetEach(t.Context(), name, limit)[1].Err
		at[1].Heal()
		at[1].Stall(blobtest.Get)
		if got := set.GetEach(t.Context(), name, limit)[1].Err; before == nil || !errors.Is(got, pace.ErrLate) || got.Error() != before.Error() {
			t.Errorf("it failed with %q, and isn't waited for as %q", before, got)
		}
		at[1].Heal()
		set.Close(context.Background())
	})
}

// TestGetEachHedgedCancelled: a caller that gives up isn't held either.
func TestGetEachHedgedCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, at := three(t, 0)
		set, err := quorum.New([]blob.Location{at[0], at[1], deaf{at[2]}}, 0)
		if err != nil {
			t.Fatal(err)
		}
		set.Hedge()
		for _, location := range at {
			location.Stall(blobtest.Get)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan []quorum.Reply, 1)
		go func() { done <- set.GetEach(ctx, name, limit) }()
		synctest.Wait()
		cancel()
		for i, reply := range <-done {
			if !errors.Is(reply.Err, context.Canceled) {
				t.Errorf("reply %d is %v", i, reply.Err)
			}
		}
		at[2].Heal()
		set.Close(context.Background())
	})
}

// TestWritesAvoidWhatIsDown: a location that takes long to fail isn't waited for
// with every blob, and is tried again after a while.
func TestWritesAvoidWhatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, at := three(t, 0)
		at[1].Fail(blobtest.Put, nil)
		at[2].Fail(blobtest.Put, nil)
		put := func() error { return set.NewWriter().Put(t.Context(), name, []byte("data")) }
		for range 3 {
			expectError(t, put(), "1/3 backends succeeded, need 2: ./b: the location is down; ./c: the location is down")
		}
		if b := at[1].Calls(blobtest.Put); b != 3 {
			t.Errorf("a location that fails at once was sent %d of 3 writes", b)
		}
		at[1].Heal()
		at[2].Hook(func(op blobtest.Op, _ blob.Name) {
			if op == blobtest.Put {
				time.Sleep(20 * time.Second)
			}
		})
		start, calls := time.Now(), at[2].Calls(blobtest.Put)
		for range 100 {
			if err := put(); err != nil {
				t.Fatal(err)
			}
		}
		if took, n := time.Since(start), at[2].Calls(blobtest.Put)-calls; took > 21*time.Second || n != 1 {
			t.Errorf("100 writes took %v and %d were sent to the location that is down", took, n)
		}
		at[2].Heal()
		at[2].Hook(nil)
		time.Sleep(time.Minute)
		if err := put(); err != nil {
			t.Fatal(err)
		}
		if n := at[2].Calls(blobtest.Put) - calls; n != 2 {
			t.Errorf("once it is back, %d writes were sent to the location", n-1)
		}
	})
}

// TestListEachHedged: a listing that stalls, at once or later, doesn't hold the
// others.
func TestListEachHedged(t *testing.T) {
	for title, c := range map[string]struct {
		hedged  bool
		stalled []int
		quorum  int
		waits   bool
	}{
		"not hedged":        {false, []int{1}, 0, true},
		"one of three":      {true, []int{1}, 0, false},
		"two of three":      {true, []int{1, 2}, 0, true},
		"a write needs one": {true, []int{1}, 1, true},
		"a write needs all": {true, []int{2}, 3, false},
		"others' need two":  {true, []int{0, 2}, 3, true},
		"nothing stalls":    {true, nil, 0, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			set, at := three(t, c.quorum)
			if c.hedged {
				set.Hedge()
			}
			if err := set.NewWriter().Put(t.Context(), name, []byte("data")); err != nil {
				t.Fatal(err)
			}
			for _, i := range c.stalled {
				at[i].Stall(blobtest.List)
			}
			type outcome struct {
				errs   []error
				err    error
				listed int
			}
			done := make(chan outcome, 1)
			go func() {
				var o outcome
				o.errs, o.err = set.ListEach(t.Context(), name.Kind, nil, func(group quorum.Group) error {
					for _, infos := range group.Listed {
						o.listed += len(infos)
					}
					return nil
				})
				done <- o
			}()
			time.Sleep(time.Hour)
			synctest.Wait()
			if waits := len(done) == 0; waits != c.waits {
				t.Errorf("%s: after an hour, it waits: %v", title, waits)
			}
			for _, location := range at {
				location.Heal()
			}
			o := <-done
			late := 0
			for _, err := range o.errs {
				if err == pace.ErrLate {
					late++
				}
			}
			want := len(c.stalled)
			if c.waits && c.quorum != 1 && c.hedged {
				want = 1 // Not both can be done without.
			} else if c.waits {
				want = 0
			}
			if o.err != nil || late != want || o.listed != 3-want {
				t.Errorf("%s: %d late, %d blobs listed, %v %v", title, late, o.listed, o.err, o.errs)
			}
			set.Close(context.Background())
		})
	}
}
