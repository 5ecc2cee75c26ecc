package reproducible_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"powercloud.unidatum.com/tools/lint"
)

// TestSecondBuild builds a release's program, the container image and a node's files
// once more, from a copy of the source tree in another folder and with another output
// base, and compares them with those that Bazel built for this test.
//
// Everything that is in the program is compiled and linked again, the standard
// library included. Of the disk cache only rules_go's own tools are taken. For
// the image, which holds that program among others, the programs and what puts
// it together may come from there, but nothing of the image itself. The same goes
// for the files of a node's release, which are made of stand-ins for its kernel and
// its programs. If this test runs with --config=release, all of it has the same
// version in both builds.
//
// At last, images are signed there with keys of an owner.
func TestSecondBuild(t *testing.T) {
	program := os.Getenv("PROGRAM")
	if program == "" {
		t.Skip("only Bazel builds the program that this compares: bazel test //tests/reproducible:all")
	}
	first, err := os.ReadFile(runfile(t, program))
	if err != nil {
		t.Fatal(err)
	}
	release := os.Getenv("RELEASE")
	p := anotherPlace(t)
	stamp := stamping(t, p.workspace, releaseVersion(t, runfile(t, release)))
	again := func(anew, label string) {
		t.Helper()
		p.build(t, anew, append(stamp, label)...)
	}
	again("Go(CompilePkg|CompilePkgExternal|Link|Stdlib)", os.Getenv("LABEL"))
	second, err := os.ReadFile(p.built(program))
	if err != nil {
		t.Fatal(err)
	}
	if err := same(first, second); err != nil {
		t.Errorf("%s, built twice: %v", program, err)
	}

	image := os.Getenv("IMAGE")
	again("ImageLayer|OCIImage|OCIIndex", os.Getenv("IMAGE_LABEL"))
	if err := sameTree(runfile(t, image), p.built(image)); err != nil {
		t.Errorf("%s, built twice: %v", image, err)
	}

	again("Initramfs|EFIFile|DiskImage|CloudImage|Compress|ReleaseFiles", os.Getenv("RELEASE_LABEL"))
	if err := sameTree(runfile(t, release), p.built(release)); err != nil {
		t.Errorf("%s, built twice: %v", release, err)
	}
	// Here, and not in a test of its own: a place takes minutes to make.
	p.checkSigning(t)
}

// TestRelease builds all of a release once more, like TestSecondBuild, but takes
// nothing at all from the disk cache: compilers' roots, kernels, programs and images
// are made again, three things at a time, and each on one processor less. The kernels'
// configurations and symbols are compared as well. Its subject is a release, with a
// version in its files.
func TestRelease(t *testing.T) {
	release := os.Getenv("WHOLE_RELEASE")
	if release == "" {
		t.Skip("it takes as long as both kernels do: bazel test --config=release //tests/reproducible:release_test")
	}
	version := releaseVersion(t, runfile(t, release))
	if version == "dev" {
		t.Fatal("what is compared has no version: bazel test --config=release //tests/reproducible:release_test")
	}
	p := anotherPlace(t)
	p.build(t, ".*", append(stamping(t, p.workspace, version),
		"--jobs=3", "//disk:release", "//kernel:amd64", "//kernel:arm64")...)
	if err := sameTree(runfile(t, release), p.built(release)); err != nil {
		t.Errorf("%s, built twice: %v", release, err)
	}
	for _, file := range strings.Fields(os.Getenv("KERNELS")) {
		first, err := os.ReadFile(runfile(t, file))
		if err != nil {
			t.Fatal(err)
		}
		second, err := os.ReadFile(p.built(file))
		if err != nil {
			t.Fatal(err)
		}
		if err := same(first, second); err != nil {
			t.Errorf("%s, built twice: %v", file, err)
		}
	}
}

// anotherPlace copies the source tree to another folder.
func anotherPlace(t *testing.T) place {
	t.Helper()
	root, err := lint.Root()
	if err != nil {
		t.Fatal(err)
	}
	scratch := scratchFolder(t)
	workspace := filepath.Join(scratch, "another", "folder")
	if err := copyTree(workspace, root); err != nil {
		t.Fatal(err)
	}
	return place{workspace: workspace, outputBase: filepath.Join(scratch, "output-base")}
}

func TestSameTree(t *testing.T) {
	tree := func(files map[string]string) string {
		root := t.TempDir()
		for name, content := range files {
			path := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return root
	}
	first := tree(map[string]string{"a": "1", "b/c": "2"})
	if err := sameTree(first, tree(map[string]string{"a": "1", "b/c": "2"})); err != nil {
		t.Error(err)
	}
	for _, files := range []map[string]string{{"a": "1"}, {"a": "1", "b/c": "3"}, {"a": "1", "b/c": "2", "d": "4"}} {
		if sameTree(first, tree(files)) == nil {
			t.Errorf("%q passed", files)
		}
	}
	if sameTree(t.TempDir(), t.TempDir()) == nil {
		t.Error("two empty trees passed")
	}
}

// sameTree returns an error that tells how the files of two trees differ.
func sameTree(first, second string) error {
	names, err := files(first)
	if err != nil {
		return err
	}
	others, err := files(second)
	if err != nil {
		return err
	}
	if len(names) == 0 || !slices.Equal(names, others) {
		return fmt.Errorf("the files are %q and %q", names, others)
	}
	for _, name := range names {
		a, err := os.ReadFile(filepath.Join(first, name))
		if err != nil {
			return err
		}
		b, err := os.ReadFile(filepath.Join(second, name))
		if err != nil {
			return err
		}
		if err := same(a, b); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// files returns the names of the files of a tree, sorted. Links to files, which
// Bazel makes of a test's data, are files.
func files(root string) ([]string, error) {
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return nil, err
	}
	var names []string
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, path)
		names = append(names, name)
		return err
	})
	return names, err
}

func TestSame(t *testing.T) {
	if err := same([]byte("abc"), []byte("abc")); err != nil {
		t.Error(err)
	}
	for other, want := range map[string]string{
		"abd": "from byte 2 on: 63, and 64", "ab": "from byte 2 on: 63, and ", "abcd": "from byte 3 on: , and 64", "": "from byte 0 on: 61 62 63, and ",
	} {
		if err := same([]byte("abc"), []byte(other)); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q for %q gave %v, want it to end with %q", other, "abc", err, want)
		}
	}
	if same(nil, nil) == nil {
		t.Error("two empty files passed")
	}
}

// same returns an error that tells where two files differ.
func same(first, second []byte) error {
	if len(first) == 0 {
		return errors.New("the file is empty")
	}
	if bytes.Equal(first, second) {
		return nil
	}
	at := 0
	for at < min(len(first), len(second)) && first[at] == second[at] {
		at++
	}
	const shown = 16
	return fmt.Errorf("SHA-256 %x (%d bytes) and %x (%d bytes), which differ from byte %d on: % x, and % x",
		sha256.Sum256(first), len(first), sha256.Sum256(second), len(second), at,
		first[at:min(at+shown, len(first))], second[at:min(at+shown, len(second))])
}

// runfile returns where a file that Bazel names with $(rootpath) lies.
func runfile(t *testing.T, path string) string {
	t.Helper()
	found, err := lint.Runfile(path)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// scratchFolder makes a folder outside the test's own: Bazel refuses to build
// inside another Bazel's output.
func scratchFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("/var/tmp", "powercloud-reproducible-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// Bazel takes the right to write from what it builds.
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				err = os.Chmod(path, 0o700)
			}
			return err
		})
		if err := errors.Join(err, os.RemoveAll(folder)); err != nil {
			t.Error(err)
		}
	})
	return folder
}

// copyTree copies a source tree, without its history and Bazel's links.
func copyTree(to, from string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		switch {
		case name == ".git":
			return fs.SkipDir
		case entry.IsDir():
			return os.MkdirAll(target, 0o755)
		case !entry.Type().IsRegular():
			return nil
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // Somebody is at work in the tree.
		}
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, content, info.Mode().Perm())
	})
}
