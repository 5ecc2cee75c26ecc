package files

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func wantFile(t *testing.T, path, content string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != content {
		t.Errorf("%s holds %q, %v; want %q", path, got, err, content)
	}
}

// names lists a directory.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, entry := range entries {
		all = append(all, entry.Name())
	}
	return all
}

func openRoot(t *testing.T, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	root := openRoot(t, dir)
	path := filepath.Join(dir, "file")
	write(t, path, "old")

	replacement, err := Replace(root, "file")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(replacement.File, "new"); err != nil {
		t.Fatal(err)
	}
	wantFile(t, path, "old")
	modified := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := replacement.Commit(modified); err != nil {
		t.Fatal(err)
	}
	wantFile(t, path, "new")
	info, err := os.Stat(path)
	if err != nil || !info.ModTime().Equal(modified) {
		t.Errorf("modified %v, %v", info.ModTime(), err)
	}
	if mode := info.Mode().Perm(); mode != 0o600 && os.PathSeparator == '/' {
		t.Errorf("mode %v", mode)
	}
	if left := names(t, dir); !slices.Equal(left, []string{"file"}) {
		t.Errorf("left in the directory: %q", left)
	}
}

func TestReplaceAborted(t *testing.T) {
	dir := t.TempDir()
	root := openRoot(t, dir)
	write(t, filepath.Join(dir, "file"), "old")
	replacement, err := Replace(root, "file")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(replacement.File, "half"); err != nil {
		t.Fatal(err)
	}
	if err := replacement.Abort(); err != nil {
		t.Fatal(err)
	}
	wantFile(t, filepath.Join(dir, "file"), "old")
	if left := names(t, dir); !slices.Equal(left, []string{"file"}) {
		t.Errorf("left in the directory: %q", left)
	}
}

// A commit that fails, here for a directory in the place, leaves nothing.
func TestReplaceFails(t *testing.T) {
	dir := t.TempDir()
	root := openRoot(t, dir)
	write(t, filepath.Join(dir, "place", "inside"), "")
	replacement, err := Replace(root, "place")
	if err != nil {
		t.Fatal(err)
	}
	if err := replacement.Commit(time.Time{}); err == nil {
		t.Error("a directory was replaced by a file")
	}
	if left := names(t, dir); !slices.Equal(left, []string{"place"}) {
		t.Errorf("left in the directory: %q", left)
	}
}

func TestReplaceStaysBelowItsRoot(t *testing.T) {
	dir := t.TempDir()
	inside, outside := filepath.Join(dir, "inside"), filepath.Join(dir, "outside")
	for _, d := range []string{inside, outside} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(inside, "link")); err != nil {
		t.Skip(err)
	}
	if _, err := Replace(openRoot(t, inside), filepath.Join("link", "file")); err == nil {
		t.Error("a file was made through a link that leads out")
	}
	if left := names(t, outside); len(left) != 0 {
		t.Errorf("outside: %q", left)
	}
}

func TestTree(t *testing.T) {
	top := t.TempDir()
	for _, name := range []string{"b", "a/c", "a/d/e", "omit/x", "z"} {
		write(t, filepath.Join(top, filepath.FromSlash(name)), name)
	}
	links := os.Symlink("b", filepath.Join(top, "link")) == nil
	omit, err := os.Stat(filepath.Join(top, "omit"))
	if err != nil {
		t.Fatal(err)
	}
	var found, skipped []string
	tree := Tree{
		Top: top, Omit: []os.FileInfo{omit},
		Skipped: func(path, _ string) { skipped = append(skipped, filepath.Base(path)) },
		Failed:  func(path string, err error) { t.Errorf("%s: %v", path, err) },
	}
	for entry := range tree.Files() {
		wantFile(t, entry.Path, entry.Name)
		found = append(found, entry.Name)
	}
	if want := []string{"a/c", "a/d/e", "b", "z"}; !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
	if want := []string{"link", "omit"}; links && !slices.Equal(skipped, want) {
		t.Errorf("skipped %q, want %q", skipped, want)
	}
	for range tree.Files() {
		break
	}
}

func TestTreeThatIsALink(t *testing.T) {
	top := t.TempDir()
	write(t, filepath.Join(top, "real", "file"), "")
	link := filepath.Join(top, "link")
	if err := os.Symlink("real", link); err != nil {
		t.Skip(err)
	}
	n := 0
	for entry := range (Tree{Top: link}).Files() {
		n++
		if entry.Name != "file" {
			t.Errorf("found %q", entry.Name)
		}
	}
	if n != 1 {
		t.Errorf("%d files", n)
	}
}

func TestReaderEndsWithItsContext(t *testing.T) {
	reason := errors.New("reason")
	pipe, feed := io.Pipe()
	defer feed.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	r := Reader(ctx, pipe)
	go io.WriteString(feed, "some")
	buffer := make([]byte, 10)
	if n, err := r.Read(buffer); err != nil || string(buffer[:n]) != "some" {
		t.Fatalf("%q, %v", buffer[:n], err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := r.Read(buffer)
		done <- err
	}()
	cancel(reason)
	if err := <-done; !errors.Is(err, reason) {
		t.Errorf("a read that waits: %v", err)
	}
	if _, err := r.Read(buffer); !errors.Is(err, reason) {
		t.Errorf("the next read: %v", err)
	}
}

func TestReaderPassesEverythingOn(t *testing.T) {
	content := strings.Repeat("0123456789", streamBuffer/4)
	got, err := io.ReadAll(Reader(t.Context(), strings.NewReader(content)))
	if err != nil || string(got) != content {
		t.Errorf("%d bytes of %d, %v", len(got), len(content), err)
	}
}

func TestWriterEndsWithItsContext(t *testing.T) {
	reason := errors.New("reason")
	drain, pipe := io.Pipe()
	defer drain.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	w := Writer(ctx, pipe)
	done := make(chan error, 1)
	go func() {
		_, err := io.WriteString(w, "nobody reads this")
		done <- err
	}()
	cancel(reason)
	if err := <-done; !errors.Is(err, reason) {
		t.Errorf("a write that waits: %v", err)
	}
}

func TestWriterPassesEverythingOn(t *testing.T) {
	content := strings.Repeat("0123456789", streamBuffer/4)
	var sink bytes.Buffer
	n, err := io.WriteString(Writer(t.Context(), &sink), content)
	if err != nil || n != len(content) || sink.String() != content {
		t.Errorf("%d bytes of %d, %v", n, len(content), err)
	}
	reason := errors.New("closed")
	drain, pipe := io.Pipe()
	drain.CloseWithError(reason)
	if _, err := io.WriteString(Writer(t.Context(), pipe), "x"); !errors.Is(err, reason) {
		t.Errorf("an error of the sink came back as %v", err)
	}
}
