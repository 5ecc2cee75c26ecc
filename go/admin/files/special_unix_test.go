//go:build unix

package files

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestClassify(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write(t, at("file"), "")
	if err := unix.Mkfifo(at("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{
		"to-file": "file", "to-pipe": "pipe", "to-null": "/dev/null", "to-nothing": "nothing", "to-dir": ".",
	} {
		if err := os.Symlink(to, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		path, file string
		target     Target
	}{
		{at("file"), filepath.Join(resolved, "file"), NewFile},
		{at("new"), at("new"), NewFile},
		{at("to-file"), filepath.Join(resolved, "file"), NewFile},
		{at("to-nothing"), at("to-nothing"), NewFile},
		{dir, dir, Directory},
		{at("to-dir"), at("to-dir"), Directory},
		{at("pipe"), at("pipe"), Special},
		{at("to-pipe"), at("to-pipe"), Special},
		{at("to-null"), at("to-null"), Special},
		{"/dev/null", "/dev/null", Special},
		// Even when the test's output goes to a regular file.
		{"/dev/stdout", "/dev/stdout", Special},
		{"/dev/../dev//stdout", "/dev/../dev//stdout", Special},
		{"/proc/self/fd/1", "/proc/self/fd/1", Special},
	} {
		target, file, err := Classify(test.path)
		if err != nil || target != test.target || file != test.file {
			t.Errorf("%s: %v, %q, %v; want %v, %q", test.path, target, file, err, test.target, test.file)
		}
	}
}

func TestTreeSkipsSpecialFiles(t *testing.T) {
	top := t.TempDir()
	if err := unix.Mkfifo(filepath.Join(top, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	why := ""
	for entry := range (Tree{Top: top, Skipped: func(_, reason string) { why = reason }}).Files() {
		t.Errorf("found %s", entry.Name)
	}
	if why != "a named pipe" {
		t.Errorf("skipped as %q", why)
	}
}

func TestTreeGoesOnAfterWhatItCantRead(t *testing.T) {
	obeyModes(t)
	top := t.TempDir()
	write(t, filepath.Join(top, "closed", "file"), "")
	write(t, filepath.Join(top, "open", "file"), "")
	if err := os.Chmod(filepath.Join(top, "closed"), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(filepath.Join(top, "closed"), 0o700) })
	found, failed := 0, 0
	for range (Tree{Top: top, Failed: func(string, error) { failed++ }}).Files() {
		found++
	}
	if found != 1 || failed != 1 {
		t.Errorf("%d found, %d failed", found, failed)
	}
}

// A pipe or a link in the place of a file that was found must neither be
// waited for nor followed.
func TestOpenRegularRefusesWhatTookTheFilesPlace(t *testing.T) {
	dir := t.TempDir()
	pipe, link, file := filepath.Join(dir, "pipe"), filepath.Join(dir, "link"), filepath.Join(dir, "file")
	write(t, file, "content")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file", link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, link} {
		if opened, err := OpenRegular(path); err == nil {
			opened.Close()
			t.Errorf("%s was opened", path)
		}
	}
	opened, err := OpenRegular(file)
	if err != nil {
		t.Fatal(err)
	}
	opened.Close()
}

func TestOpenEndsWithItsContext(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	reason := errors.New("reason")
	for _, flag := range []int{os.O_RDONLY, os.O_WRONLY} {
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := Open(ctx, pipe, flag)
			done <- err
		}()
		cancel(reason)
		if err := <-done; !errors.Is(err, reason) {
			t.Errorf("opening a pipe that nobody else opens: %v", err)
		}
		if _, err := Open(ctx, pipe, flag); !errors.Is(err, reason) {
			t.Errorf("opening it again: %v", err)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "content")
	opened, err := Open(t.Context(), file, os.O_RDONLY)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	if content, err := io.ReadAll(opened); err != nil || string(content) != "content" {
		t.Errorf("read %q, %v", content, err)
	}
}

// TestReplaceRefusesALongNameAtOnce: not only when all of the content is there.
func TestReplaceRefusesALongNameAtOnce(t *testing.T) {
	dir := t.TempDir()
	if replacement, err := Replace(openRoot(t, dir), strings.Repeat("x", 300)); !errors.Is(err, unix.ENAMETOOLONG) || replacement != nil {
		t.Errorf("a file with a name of 300 bytes: %v", err)
	}
	if left := names(t, dir); len(left) != 0 {
		t.Errorf("left in the directory: %q", left)
	}
}
