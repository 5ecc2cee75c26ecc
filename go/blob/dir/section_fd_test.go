//go:build linux || darwin

package dir

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/go/blob"
)

// TestMarkChangesWithTheEntries changes a folder in every way that a location does.
func TestMarkChangesWithTheEntries(t *testing.T) {
	path := t.TempDir()
	opened, err := openRoot(path)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.close()
	exact := exactTimes(opened.(*fdFolder).fd)
	seen := map[string]string{}
	look := func(after string) {
		t.Helper()
		mark, err := opened.mark(time.Now().Add(time.Hour))
		if err != nil || (mark != "") != exact {
			t.Fatalf("after %s the mark is %q, %v", after, mark, err)
		}
		if before, ok := seen[mark]; ok && exact {
			t.Errorf("after %s the mark is the same as after %s", after, before)
		}
		seen[mark] = after
		if again, err := opened.mark(time.Now().Add(time.Hour)); again != mark || err != nil {
			t.Errorf("without a change the mark %q becomes %q, %v", mark, again, err)
		}
		if fresh, err := opened.mark(time.Now()); err != nil || fresh != "" && fresh != mark {
			t.Errorf("soon after the change the mark is %q, %v", fresh, err)
		}
		if early, err := opened.mark(time.Now().Add(-time.Hour)); early != "" || err != nil {
			t.Errorf("before the change the mark is %q, %v", early, err)
		}
		// The next change must get another time from the kernel's clock.
		waitForTick(t, filepath.Join(t.TempDir(), "tick"))
	}
	file, other := filepath.Join(path, "file"), filepath.Join(path, "other")
	look("nothing")
	must(t, os.WriteFile(file, nil, 0o600))
	look("a new file")
	must(t, os.WriteFile(other, nil, 0o600))
	look("another")
	must(t, os.Rename(other, file))
	look("the first replaced by the other")
	must(t, os.Remove(file))
	look("a removal")
	must(t, os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)))
	look("times set back")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// waitForTick waits until the file system gives a change another time.
func waitForTick(t *testing.T, path string) {
	t.Helper()
	var first time.Time
	for {
		must(t, os.WriteFile(path, []byte("x"), 0o600))
		info, err := os.Stat(path)
		must(t, err)
		switch {
		case first.IsZero():
			first = info.ModTime()
		case info.ModTime().After(first):
			return
		}
	}
}

func TestSections(t *testing.T) {
	location, err := New(filepath.Join(t.TempDir(), "location"))
	must(t, err)
	if mark, err := location.SectionMark(t.Context(), blob.KindManifest, 7); mark != "" || err != nil {
		t.Errorf("a section of a directory that isn't there has the mark %q, %v", mark, err)
	}
	names := []blob.Name{
		{Kind: blob.KindManifest, ID: [32]byte{7, 1}},
		{Kind: blob.KindManifest, ID: [32]byte{7, 2}},
		{Kind: blob.KindManifest, ID: [32]byte{8, 1}},
		{Kind: blob.KindChunk, ID: [32]byte{7, 3}},
	}
	for _, name := range names {
		must(t, location.Put(t.Context(), name, []byte("x")))
	}
	found := map[blob.Name]int{}
	must(t, location.ListSection(t.Context(), blob.KindManifest, 7, func(info blob.Info) error {
		found[info.Name]++
		return nil
	}))
	if len(found) != 2 || found[names[0]] != 1 || found[names[1]] != 1 {
		t.Errorf("the section lists %v", found)
	}
	if mark, err := location.SectionMark(t.Context(), blob.KindManifest, 9); mark != "" || err != nil {
		t.Errorf("a section that isn't there has the mark %q, %v", mark, err)
	}
	if _, err := location.SectionMark(t.Context(), blob.KindHeader, 0); err == nil || !strings.Contains(err.Error(), "header") {
		t.Errorf("the mark of the header's section: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := location.SectionMark(ctx, blob.KindManifest, 7); err == nil {
		t.Error("a canceled call gives a mark")
	}
	must(t, os.RemoveAll(location.Path()))
	must(t, os.WriteFile(location.Path(), nil, 0o600))
	if _, err := location.SectionMark(t.Context(), blob.KindManifest, 7); err == nil {
		t.Error("a file in the place of the directory gives a mark")
	}
}
