package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain lets this program be run as Bazel.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "bazel" {
		if err := standInForBazel(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// stuckVariable has the stand-in build the same image every time.
const stuckVariable = "BAZEL_IS_STUCK"

// standInForBazel makes an "image" of the edited file alone, and says where it is.
func standInForBazel(args []string) error {
	overlay, ok := strings.CutPrefix(args[1], "--package_path=")
	overlay, rest, _ := strings.Cut(overlay, ":")
	if !ok || rest != "%workspace%" {
		return fmt.Errorf("Bazel was called with %q", args)
	}
	switch args[0] {
	case "info":
		folder, err := filepath.Abs("out")
		fmt.Println(folder)
		return err
	case "build":
		content, err := os.ReadFile(filepath.Join(overlay, editedPackage, editedFile))
		if os.Getenv(stuckVariable) != "" {
			content = nil
		}
		image := filepath.Join("out", imageFile)
		return errors.Join(err, os.MkdirAll(filepath.Dir(image), 0o755), os.WriteFile(image, content, 0o644))
	}
	return fmt.Errorf("Bazel has no command %s", args[0])
}

// checkout makes a folder that stands in for the checkout.
func checkout(t *testing.T) options {
	t.Helper()
	opts := options{rounds: 2, workspace: t.TempDir(), cache: filepath.Join(t.TempDir(), "cache"), bazel: filepath.Join(t.TempDir(), "bazel")}
	program, err := os.Executable()
	folder := filepath.Join(opts.workspace, editedPackage)
	err = errors.Join(err, os.Symlink(program, opts.bazel), os.MkdirAll(folder, 0o755),
		os.WriteFile(filepath.Join(folder, editedFile), []byte(daemonText), 0o644),
		os.WriteFile(filepath.Join(folder, "BUILD.bazel"), []byte("# a package\n"), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	return opts
}

const daemonText = "package daemon\n\nvar text = \"" + editedText + "\"\n"

// TestRebuilds edits twice. The checkout must stay as it is, and nothing be left.
func TestRebuilds(t *testing.T) {
	opts := checkout(t)
	took, err := measureRebuilds(context.Background(), opts, t.Logf)
	if err != nil || len(took) != 2 || took[0] <= 0 {
		t.Errorf("%v, %v", took, err)
	}
	content, err := os.ReadFile(filepath.Join(opts.workspace, editedPackage, editedFile))
	if err != nil || string(content) != daemonText {
		t.Errorf("the checkout has %q, %v", content, err)
	}
	image, err := os.ReadFile(filepath.Join(opts.workspace, "out", imageFile))
	if err != nil || !strings.Contains(string(image), editedText+" (edit ") {
		t.Errorf("the image was made of %q, %v", image, err)
	}
	if left, err := os.ReadDir(opts.cache); err != nil || len(left) > 0 {
		t.Errorf("there are still %v, %v", left, err)
	}
}

// TestSameImage has a build that takes no notice of the edit.
func TestSameImage(t *testing.T) {
	t.Setenv(stuckVariable, "1")
	if _, err := measureRebuilds(context.Background(), checkout(t), t.Logf); err == nil || !strings.Contains(err.Error(), "changed nothing") {
		t.Errorf("%v", err)
	}
}

func TestPackageWithFolders(t *testing.T) {
	opts := checkout(t)
	if err := os.Mkdir(filepath.Join(opts.workspace, editedPackage, "below"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := measureRebuilds(context.Background(), opts, t.Logf); err == nil || !strings.Contains(err.Error(), "below") {
		t.Errorf("%v", err)
	}
}

func TestReplaceOnce(t *testing.T) {
	if got, err := replaceOnce([]byte("a b c"), "b", "d"); string(got) != "a d c" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	for _, text := range []string{"a", "b b"} {
		if _, err := replaceOnce([]byte(text), "b", "d"); err == nil {
			t.Errorf("%q was edited", text)
		}
	}
}

// TestEditedText edits what the checkout really has.
func TestEditedText(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("../../..", editedPackage, editedFile))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := replaceOnce(content, editedText, "other"); err != nil {
		t.Error(err)
	}
}
