package quorum_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
	"powercloud.unidatum.com/go/blob/quorum"
)

// limit is more than any blob here has, in bytes.
const limit = 1 << 20

var name = blobtest.Name(blob.KindChunk, 1)

// three returns a set over ./a, ./b and ./c.
func three(t *testing.T, q int) (*quorum.Set, []*blobtest.Faulty) {
	t.Helper()
	var faulty []*blobtest.Faulty
	var locations []blob.Location
	for _, at := range []string{"./a", "./b", "./c"} {
		f := blobtest.NewFaulty(blobtest.NewMemory(at))
		faulty, locations = append(faulty, f), append(locations, f)
	}
	set, err := quorum.New(locations, q)
	if err != nil {
		t.Fatal(err)
	}
	return set, faulty
}

func accept([]byte) error { return nil }

func expectError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
}

func TestNew(t *testing.T) {
	var locations []blob.Location
	for n := range 6 {
		for q := -1; q <= n+1; q++ {
			set, err := quorum.New(locations, q)
			want := q
			if q == 0 {
				want = n/2 + 1
			}
			if ok := n > 0 && q >= 0 && q <= n; (err == nil) != ok {
				t.Errorf("a quorum of %d over %d locations: %v", q, n, err)
			} else if ok && (set.Quorum() != want || len(set.Locations()) != n) {
				t.Errorf("a quorum of %d over %d locations became %d over %d", q, n, set.Quorum(), len(set.Locations()))
			}
		}
		locations = append(locations, blobtest.NewMemory(strings.Repeat("x", n+1)))
	}
}

func TestPut(t *testing.T) {
	for _, missing := range []bool{false, true} {
		set, at := three(t, 0)
		writer := set.NewWriter()
		put := writer.Put
		if missing {
			put = writer.PutMissing
		}
		if err := put(t.Context(), name, []byte("data")); err != nil {
			t.Fatal(err)
		}
		for _, location := range at {
			if got, err := location.Get(t.Context(), name, nil, limit); err != nil || string(got) != "data" {
				t.Errorf("%s has %q, %v", location, got, err)
			}
		}
		if missed := set.Missed(); len(missed) != 0 {
			t.Errorf("Missed: %v", missed)
		}
		at[1].Fail(blobtest.Put|blobtest.Stat, nil)
		if err := put(t.Context(), name, []byte("later")); err != nil {
			t.Errorf("with two of three: %v", err)
		}
		if missed := set.Missed(); len(missed) != 1 || missed[0].Location.String() != "./b" || !errors.Is(missed[0].Err, blobtest.ErrFault) {
			t.Errorf("Missed: %v", missed)
		}
		at[2].Fill(2)
		err := put(t.Context(), name, []byte("latest"))
		expectError(t, err, "1/3 backends succeeded, need 2: ./b: the location is down; ./c: no space left on the location")
		if !errors.Is(err, blobtest.ErrFault) || !errors.Is(err, blobtest.ErrFull) {
			t.Errorf("%v doesn't keep the locations' errors", err)
		}
		if got, err := at[0].Get(t.Context(), name, nil, limit); err != nil || string(got) != "latest" {
			t.Errorf("the location that works has %q, %v", got, err)
		}
	}
}

func TestPutMissingWritesOnlyWhatIsMissing(t *testing.T) {
	set, at := three(t, 3)
	writer := set.NewWriter()
	if err := errors.Join(at[0].Put(t.Context(), name, []byte("data")), at[1].Put(t.Context(), name, []byte("dat"))); err != nil {
		t.Fatal(err)
	}
	if err := writer.PutMissing(t.Context(), name, []byte("data")); err != nil {
		t.Fatal(err)
	}
	if a, b, c := at[0].Calls(blobtest.Put), at[1].Calls(blobtest.Put), at[2].Calls(blobtest.Put); a != 1 || b != 2 || c != 1 {
		t.Errorf("puts at the locations are %d, %d, %d; want 1, 2, 1", a, b, c)
	}
}

// TestWaitsForAll would end with a deadlock in the bubble if a call left a
// goroutine behind, and with a wrong count if it didn't wait.
func TestWaitsForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, at := three(t, 1)
		at[2].Stall(blobtest.All)
		returned := false
		go func() {
			if err := set.NewWriter().Put(context.Background(), name, []byte("data")); err != nil {
				t.Error(err)
			}
			returned = true
		}()
		synctest.Wait()
		if returned {
			t.Error("Put returned before every location had")
		}
		at[2].Heal()
		synctest.Wait()
		if got, err := at[2].Get(context.Background(), name, nil, limit); !returned || err != nil || string(got) != "data" {
			t.Errorf("the slow location has %q, %v", got, err)
		}
	})
}

func TestCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, at := three(t, 0)
		writer := set.NewWriter()
		at[0].Stall(blobtest.All)
		at[1].Stall(blobtest.All)
		ctx, cancel := context.WithCancel(context.Background())
		var errs []error
		go func() {
			getErr := set.Get(ctx, name, limit, accept)
			errs = []error{writer.Put(ctx, name, nil), writer.PutMissing(ctx, name, nil), writer.Flush(ctx), getErr}
		}()
		synctest.Wait()
		cancel()
		synctest.Wait()
		if len(errs) != 4 {
			t.Fatalf("the calls didn't return: %v", errs)
		}
		for i, err := range errs {
			if err != context.Canceled {
				t.Errorf("call %d: %v", i, err)
			}
		}
		if missed := set.Missed(); len(missed) != 0 {
			t.Errorf("Missed: %v, though the caller gave up", missed)
		}
	})
}

func TestGet(t *testing.T) {
	set, at := three(t, 0)
	if err := set.Get(t.Context(), name, limit, accept); err != blob.ErrNotFound {
		t.Errorf("Get of an absent blob: %v", err)
	}
	if err := set.NewWriter().Put(t.Context(), name, []byte("data")); err != nil {
		t.Fatal(err)
	}
	get := func() error {
		return set.Get(t.Context(), name, limit, func(data []byte) error {
			if string(data) != "data" {
				clear(data)
				return errors.New("altered")
			}
			return nil
		})
	}
	at[0].Corrupt()
	at[1].Truncate()
	if err := get(); err != nil {
		t.Errorf("Get with one good copy: %v", err)
	}
	if n := at[2].Calls(blobtest.Get); n != 2 {
		t.Errorf("the good copy was read %d times", n-1)
	}
	if err := at[2].Delete(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	expectError(t, get(), "no intact copy of "+name.String()+" at 3 locations (1 without a copy): ./a: altered; ./b: altered")
	at[1].Heal()
	at[1].Fail(blobtest.Get, nil)
	at[0].Heal()
	if err := at[0].Delete(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	err := get()
	expectError(t, err, "no intact copy of "+name.String()+" at 3 locations (2 without a copy): ./b: the location is down")
	if errors.Is(err, blob.ErrNotFound) || !errors.Is(err, blobtest.ErrFault) {
		t.Errorf("%v: unreachable is not the same as not found", err)
	}
}

// TestGetVerifyNotFound: what verify returns says nothing about whether there is
// a blob.
func TestGetVerifyNotFound(t *testing.T) {
	set, _ := three(t, 0)
	if err := set.NewWriter().Put(t.Context(), name, nil); err != nil {
		t.Fatal(err)
	}
	err := set.Get(t.Context(), name, limit, func([]byte) error { return blob.ErrNotFound })
	var failed *quorum.ReadError
	if !errors.As(err, &failed) || len(failed.Failures) != 3 {
		t.Errorf("Get: %v", err)
	}
}

func TestGetTriesFailedLocationsLast(t *testing.T) {
	set, at := three(t, 0)
	if err := set.NewWriter().Put(t.Context(), name, []byte("data")); err != nil {
		t.Fatal(err)
	}
	get := func() {
		t.Helper()
		if err := set.Get(t.Context(), name, limit, accept); err != nil {
			t.Fatal(err)
		}
	}
	calls := func() [3]int {
		return [3]int{at[0].Calls(blobtest.Get), at[1].Calls(blobtest.Get), at[2].Calls(blobtest.Get)}
	}
	at[0].Fail(blobtest.Get, nil)
	for range 5 {
		get()
	}
	if got := calls(); got != [3]int{1, 5, 0} {
		t.Errorf("reads at the locations are %v, want one of the first and then of the second", got)
	}
	// Never skipped: with the others down it is tried, and is first again once it
	// has answered.
	at[0].Heal()
	at[1].Fail(blobtest.Get, nil)
	at[2].Fail(blobtest.Get, nil)
	for range 2 {
		get()
	}
	if got := calls(); got != [3]int{3, 6, 1} {
		t.Errorf("reads at the locations are %v", got)
	}
}

func TestGetEach(t *testing.T) {
	set, at := three(t, 0)
	if err := errors.Join(at[0].Put(t.Context(), name, []byte("one")), at[1].Put(t.Context(), name, bytes.Repeat([]byte("x"), 20))); err != nil {
		t.Fatal(err)
	}
	replies := set.GetEach(t.Context(), name, 10)
	if len(replies) != 3 || string(replies[0].Data) != "one" || replies[0].Err != nil ||
		!errors.Is(replies[1].Err, blob.ErrTooLarge) || !errors.Is(replies[2].Err, blob.ErrNotFound) {
		t.Errorf("GetEach = %+v", replies)
	}
	for i, reply := range replies {
		if reply.Location != set.Locations()[i] {
			t.Errorf("reply %d is of %s", i, reply.Location)
		}
	}
}

func TestLacking(t *testing.T) {
	set, at := three(t, 0)
	if err := errors.Join(at[0].Put(t.Context(), name, []byte("data")), at[1].Put(t.Context(), name, []byte("dat"))); err != nil {
		t.Fatal(err)
	}
	if n := set.Lacking(t.Context(), name, 4); n != 2 {
		t.Errorf("%d locations lack it, want those with another size and with none", n)
	}
	at[2].Fail(blobtest.Stat, nil)
	if n := set.Lacking(t.Context(), name, 4); n != 1 {
		t.Errorf("%d locations lack it, though one doesn't answer", n)
	}
}

func TestFlush(t *testing.T) {
	set, at := three(t, 0)
	writer := set.NewWriter()
	if err := writer.Flush(t.Context()); err != nil {
		t.Errorf("Flush of nothing: %v", err)
	}
	if err := writer.Put(t.Context(), name, nil); err != nil {
		t.Fatal(err)
	}
	at[0].Fail(blobtest.Flush, nil)
	if err := writer.Flush(t.Context()); err != nil {
		t.Errorf("Flush at two of three: %v", err)
	}
	at[1].Fail(blobtest.Flush, nil)
	expectError(t, writer.Flush(t.Context()), "1/3 backends succeeded, need 2: ./a: the location is down; ./b: the location is down")
}

// TestFlushCountsByBlob: a blob that only ./b and ./c took isn't durable at two
// locations when ./a and ./b flush.
func TestFlushCountsByBlob(t *testing.T) {
	set, at := three(t, 0)
	writer := set.NewWriter()
	put := func(n int) {
		t.Helper()
		if err := writer.Put(t.Context(), blobtest.Name(blob.KindChunk, n), nil); err != nil {
			t.Fatal(err)
		}
	}
	put(1)
	at[0].Fail(blobtest.Put, nil)
	put(2)
	at[0].Heal()
	put(3)
	at[2].Fail(blobtest.Flush, errors.New("input/output error"))
	for range 2 {
		expectError(t, writer.Flush(t.Context()), "1/3 backends succeeded, need 2: ./a: the location is down; ./c: input/output error")
	}
	at[2].Heal()
	if err := writer.Flush(t.Context()); err != nil {
		t.Errorf("Flush at all: %v", err)
	}
	// What has been flushed once is settled.
	put(4)
	at[2].Fail(blobtest.Flush, nil)
	if err := writer.Flush(t.Context()); err != nil {
		t.Errorf("Flush of a blob that all took, at two: %v", err)
	}
}

// TestFlushDoesNotSettleWhatCameLater has a put end while a flush is running.
func TestFlushDoesNotSettleWhatCameLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, at := three(t, 0)
		writer := set.NewWriter()
		ctx := context.Background()
		at[1].Stall(blobtest.Flush)
		var flushErr error
		go func() { flushErr = writer.Flush(ctx) }()
		synctest.Wait()
		at[0].Fail(blobtest.Put, nil)
		if err := writer.Put(ctx, name, nil); err != nil {
			t.Error(err)
		}
		at[1].Heal()
		at[0].Heal()
		synctest.Wait()
		if flushErr != nil {
			t.Error(flushErr)
		}
		at[2].Fail(blobtest.Flush, nil)
		if err := writer.Flush(ctx); err == nil {
			t.Error("a blob at ./b and ./c passes for flushed at ./a and ./b")
		}
	})
}

func TestDoubt(t *testing.T) {
	for q, enough := range []int{1: 2, 2: 1, 3: 1} {
		if q == 0 {
			continue
		}
		set, at := three(t, q)
		for unread := range 4 {
			var failures []quorum.Failure
			for _, location := range at[:unread] {
				failures = append(failures, quorum.Failure{Location: location, Err: blobtest.ErrFault})
			}
			doubt := set.Doubt(failures)
			if certain := 3-unread > enough; certain != (doubt == "") {
				t.Errorf("with a quorum of %d and %d of 3 locations unread the doubt is %q", q, unread, doubt)
			}
		}
	}
	set, at := three(t, 0)
	doubt := set.Doubt([]quorum.Failure{{Location: at[0], Err: blobtest.ErrFault}, {Location: at[2], Err: blobtest.ErrFull}})
	want := "only 1 of 3 locations could be read, so there may be newer versions than theirs " +
		"(./a: the location is down; ./c: no space left on the location)"
	if doubt != want {
		t.Errorf("the doubt is %q, want %q", doubt, want)
	}
}

// doubter is a location that may not have been asked for the newest.
type doubter struct {
	blob.Location
	doubt string
}

func (d *doubter) Doubt() string { return d.doubt }

// TestDoubtOfALocation: what a location isn't sure of itself counts as unread.
func TestDoubtOfALocation(t *testing.T) {
	unsure := &doubter{Location: blobtest.NewMemory("./a")}
	other := blobtest.NewMemory("./b")
	for _, locations := range [][]blob.Location{{unsure}, {unsure, other}, {unsure, other, blobtest.NewMemory("./c")}} {
		set, err := quorum.New(locations, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, doubt := range []string{"", "too few of its parts"} {
			unsure.doubt = doubt
			if want := doubt != "" && len(locations) == 1; want != (set.Doubt(nil) != "") {
				t.Errorf("of %d locations, one of which says %q, the doubt is %q", len(locations), doubt, set.Doubt(nil))
			}
			unread := []quorum.Failure{{Location: locations[len(locations)-1], Err: blobtest.ErrFault}}
			if want := "./a: " + doubt; doubt != "" && len(locations) > 1 && !strings.Contains(set.Doubt(unread), want) {
				t.Errorf("of %d locations, one of which is unread, the doubt is %q, want %q in it", len(locations), set.Doubt(unread), want)
			}
		}
	}
}

func TestCorrupt(t *testing.T) {
	verify := func(data []byte) error {
		if string(data) != "data" {
			return errors.New("altered")
		}
		return nil
	}
	for title, c := range map[string]struct {
		spoil func(set *quorum.Set, at []*blobtest.Faulty)
		want  string
	}{
		"all good": {func(set *quorum.Set, _ []*blobtest.Faulty) {
			if err := set.NewWriter().Put(t.Context(), name, []byte("data")); err != nil {
				t.Fatal(err)
			}
		}, ""},
		"missing":   {func(*quorum.Set, []*blobtest.Faulty) {}, ""},
		"down":      {func(_ *quorum.Set, at []*blobtest.Faulty) { at[0].Fail(blobtest.Get, nil) }, ""},
		"too large": {func(_ *quorum.Set, at []*blobtest.Faulty) { at[0].Fail(blobtest.Get, blob.ErrTooLarge) }, "./a "},
		"altered": {func(_ *quorum.Set, at []*blobtest.Faulty) {
			if err := at[1].Put(t.Context(), name, []byte("other")); err != nil {
				t.Fatal(err)
			}
		}, "./b "},
		"noted": {func(set *quorum.Set, _ []*blobtest.Faulty) {
			set.NoteCorrupt(0)
		}, "./a "},
	} {
		set, at := three(t, 0)
		if err := set.Get(t.Context(), name, limit, verify); !errors.Is(err, blob.ErrNotFound) || len(set.Corrupt()) != 0 {
			t.Errorf("a blob that nobody has is corrupt: %v, %v", set.Corrupt(), err)
		}
		if err := at[2].Put(t.Context(), name, []byte("data")); err != nil {
			t.Fatal(err)
		}
		c.spoil(set, at)
		if err := set.Get(t.Context(), name, limit, verify); err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, location := range set.Corrupt() {
			got += location.String() + " "
		}
		if got != c.want {
			t.Errorf("%s: corrupt copies are noted at %q, want %q", title, got, c.want)
		}
	}
}

// lost is a location whose first answer is altered on the way, and which can't be
// reached for another.
type lost struct{ *blobtest.Faulty }

func (l lost) GetAccepted(_ context.Context, _ blob.Name, _ []byte, _ int64, accept func([]byte) error) ([]byte, error) {
	if err := accept([]byte("altered on the way")); err == nil {
		panic("what was altered was accepted")
	}
	return nil, blobtest.ErrFault
}

// TestAlteredOnTheWay: what a location has isn't known from an answer that was altered
// on the way.
func TestAlteredOnTheWay(t *testing.T) {
	good := blobtest.NewMemory("./b")
	set, err := quorum.New([]blob.Location{lost{blobtest.NewFaulty(blobtest.NewMemory("./a"))}, good}, 0)
	if err != nil {
		t.Fatal(err)
	}
	name := blobtest.Name(blob.KindChunk, 1)
	if err := good.Put(t.Context(), name, []byte("data")); err != nil {
		t.Fatal(err)
	}
	asked := false
	err = set.Get(t.Context(), name, limit, func(data []byte) error {
		if string(data) != "data" {
			asked = true
			return errors.New("altered")
		}
		return nil
	})
	if err != nil || !asked || len(set.Corrupt()) != 0 {
		t.Errorf("Get: %v; asked %v; corrupt copies are noted at %v", err, asked, set.Corrupt())
	}
}
