package lint

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"
)

func TestProblemIsOneLineThatNamesTheFile(t *testing.T) {
	p := Problem{File: "go/a.go", What: "is odd", Mend: "go run ./it"}
	if got, want := p.String(), "go/a.go: is odd; mend it: go run ./it"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	p.Line = 7
	if got, want := p.String(), "go/a.go:7: is odd; mend it: go run ./it"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFilesLeavesOutWhatIsNotSource(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b/z.go", "a.go", ".git/c.go", "out/d.go", "e.md"} {
		write(t, filepath.Join(dir, name))
	}
	if err := os.Symlink("out", filepath.Join(dir, "bazel-out")); err != nil {
		t.Fatal(err)
	}
	got, err := Files(os.DirFS(dir), Extension(".go"))
	if want := []string{"a.go", "b/z.go", "out/d.go"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q and %v, want %q", got, err, want)
	}
}

func TestFilesRefusesToFindNothing(t *testing.T) {
	if got, err := Files(fstest.MapFS{"a.md": {}}, Extension(".go")); err == nil {
		t.Errorf("got %q and no error", got)
	}
}

func TestRoot(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	runfiles := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"))
	write(t, filepath.Join(dir, "a/b/c"))
	if err := os.MkdirAll(filepath.Join(runfiles, "ws"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "go.mod"), filepath.Join(runfiles, "ws/go.mod")); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name              string
		workspace, srcdir string
		working           string
		ok                bool
	}{
		{name: "bazel run", workspace: dir, working: runfiles, ok: true},
		{name: "bazel test", srcdir: runfiles, working: runfiles, ok: true},
		{name: "bazel test without go.mod", srcdir: t.TempDir(), working: dir},
		{name: "go test", working: filepath.Join(dir, "a/b"), ok: true},
		{name: "elsewhere", working: t.TempDir()},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("BUILD_WORKSPACE_DIRECTORY", test.workspace)
			t.Setenv("TEST_SRCDIR", test.srcdir)
			t.Setenv("TEST_WORKSPACE", "ws")
			t.Chdir(test.working)
			got, err := Root()
			if test.ok && (err != nil || got != dir) || !test.ok && err == nil {
				t.Errorf("got %q and %v", got, err)
			}
		})
	}
}

func write(t *testing.T, name string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}
