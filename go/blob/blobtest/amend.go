package blobtest

import (
	"bytes"
	"errors"
	"sync"
	"testing"

	"powercloud.unidatum.com/go/blob"
)

// appending returns a Change that appends to a blob.
func appending(more string) blob.Change {
	return func(data []byte, err error) ([]byte, error) {
		if err != nil && !errors.Is(err, blob.ErrNotFound) {
			return nil, err
		}
		return append(bytes.Clone(data), more...), nil
	}
}

// testAmend changes blobs that nobody else touches.
func testAmend(t *testing.T, location blob.Location) {
	for _, kind := range blob.Kinds() {
		name := Name(kind, 1)
		for _, more := range []string{"one", "two"} {
			if err := blob.Amend(t.Context(), location, name, limit, appending(more)); err != nil {
				t.Fatalf("Amend(%s): %v", name, err)
			}
		}
		expect(t, location, name, []byte("onetwo"))

		refusal := errors.New("no")
		err := blob.Amend(t.Context(), location, name, limit, func([]byte, error) ([]byte, error) { return []byte("three"), refusal })
		if !errors.Is(err, refusal) {
			t.Errorf("Amend(%s) whose change fails: %v", name, err)
		}
		if err := blob.Amend(t.Context(), location, name, limit, func([]byte, error) ([]byte, error) { return nil, nil }); err != nil {
			t.Errorf("Amend(%s) that changes nothing: %v", name, err)
		}
		if err := blob.Amend(t.Context(), location, name, 3, appending("four")); !errors.Is(err, blob.ErrTooLarge) {
			t.Errorf("Amend(%s) of more than the limit: %v", name, err)
		}
		expect(t, location, name, []byte("onetwo"))
	}
	noTemporaries(t, location)
}

// testSupersede stores blobs that give way to others.
func testSupersede(t *testing.T, location blob.Location) {
	name := Name(blob.KindManifest, 1)
	supersede := func(data string, limit int64, staying string) error {
		return blob.Supersede(t.Context(), location, name, limit, []byte(data), func(there []byte) bool { return string(there) == staying })
	}
	for _, step := range []struct {
		data    string
		limit   int64
		staying string
		want    string
		err     error
	}{
		{"first", limit, "", "first", nil},
		{"second", limit, "first", "first", nil},
		{"second", 4, "first", "first", blob.ErrTooLarge},
		{"second", 4, "", "first", blob.ErrTooLarge},
		{"third", 5, "", "third", nil},
	} {
		if err := supersede(step.data, step.limit, step.staying); !errors.Is(err, step.err) {
			t.Errorf("Supersede by %q unless %q, up to %d bytes: %v, want %v", step.data, step.staying, step.limit, err, step.err)
		}
		expect(t, location, name, []byte(step.want))
	}
	noTemporaries(t, location)
}

// AmendMeanwhile has another Location of the same place replace, create and delete a blob
// while it is changed.
func AmendMeanwhile(t *testing.T, location, other blob.Location) {
	t.Helper()
	name := Name(blob.KindManifest, 1)
	for _, test := range []struct{ before, meanwhile, want string }{
		{"", "theirs", "theirsmine"},
		{"former", "theirs", "theirsmine"},
		{"former", "", "mine"},
		{"theirs", "theirs", "theirsmine"},
	} {
		set := func(content string) {
			t.Helper()
			err := other.Delete(t.Context(), name)
			if content != "" {
				err = errors.Join(err, other.Put(t.Context(), name, []byte(content)))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		set(test.before)
		var once sync.Once
		err := blob.Amend(t.Context(), location, name, limit, func(data []byte, err error) ([]byte, error) {
			next, err := appending("mine")(data, err)
			once.Do(func() { set(test.meanwhile) })
			return next, err
		})
		if err != nil {
			t.Fatalf("Amend of %q that becomes %q meanwhile: %v", test.before, test.meanwhile, err)
		}
		expect(t, location, name, []byte(test.want))
	}

	content := "theirs"
	err := blob.Amend(t.Context(), location, name, limit, func(data []byte, err error) ([]byte, error) {
		content += "."
		put(t, other, name, []byte(content))
		return []byte("mine"), err
	})
	if !errors.Is(err, blob.ErrContended) {
		t.Errorf("Amend of what is replaced every time: %v", err)
	}
	expect(t, location, name, []byte(content))
	noTemporaries(t, location)
}

// AmendAtOnce has several change one blob at once, through different Locations of one
// place in turn: no change is lost.
func AmendAtOnce(t *testing.T, locations ...blob.Location) {
	t.Helper()
	const writers, changes = 4, 5
	name := Name(blob.KindManifest, 1)
	location := locations[0]
	var wait sync.WaitGroup
	for writer := range writers {
		wait.Go(func() {
			for i := range changes {
				mark := string(rune('a' + writer*changes + i))
				err := blob.ErrContended
				for errors.Is(err, blob.ErrContended) {
					err = blob.Amend(t.Context(), locations[writer%len(locations)], name, limit, appending(mark))
				}
				if err != nil {
					t.Errorf("Amend: %v", err)
				}
			}
		})
	}
	wait.Wait()
	got, err := location.Get(t.Context(), name, nil, limit)
	if err != nil {
		t.Fatal(err)
	}
	for i := range writers * changes {
		if mark := byte('a' + i); bytes.Count(got, []byte{mark}) != 1 {
			t.Errorf("after %d changes at once, %q hasn't one %c", writers*changes, got, mark)
		}
	}
	noTemporaries(t, location)
}
