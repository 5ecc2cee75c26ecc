package buildfiles

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"powercloud.unidatum.com/tools/lint"
)

// gazelle returns the command that Bazel gives to the test.
func gazelle(t *testing.T) Gazelle {
	t.Helper()
	command, repositories := os.Getenv("GAZELLE"), os.Getenv("GAZELLE_REPOSITORIES")
	if command == "" || repositories == "" {
		t.Skip("Bazel gives gazelle to this test; run it with bazel test //tools/lint/buildfiles:all")
	}
	g := Gazelle{Prefix: "powercloud.unidatum.com"}
	for path, to := range map[string]*string{command: &g.Command, repositories: &g.Repositories} {
		var err error
		if *to, err = lint.Runfile(path); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

func TestWorkspace(t *testing.T) {
	g := gazelle(t)
	root, err := lint.Root()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := g.Stale(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
}

func TestStaleTree(t *testing.T) {
	g := gazelle(t)
	root := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stale := func() string {
		t.Helper()
		problems, err := g.Stale(root)
		if err != nil {
			t.Fatal(err)
		}
		var files []string
		for _, p := range problems {
			files = append(files, p.File)
		}
		return strings.Join(files, " ")
	}
	write("WORKSPACE", "")
	write("BUILD.bazel", "")
	write("go/a/a.go", "package a\n")
	if got := stale(); got != "go/a/BUILD.bazel" {
		t.Errorf("a package without a BUILD file: stale are %q", got)
	}
	if _, err := os.Stat(filepath.Join(root, "go/a/BUILD.bazel")); !os.IsNotExist(err) {
		t.Error("looking for stale files wrote one")
	}
	if err := g.Update(root); err != nil {
		t.Fatal(err)
	}
	if got := stale(); got != "" {
		t.Errorf("after an update, stale are %q", got)
	}
	write("go/a/b.go", "package a\n\nimport _ \"powercloud.unidatum.com/go/b\"\n")
	if got := stale(); got != "go/a/BUILD.bazel" {
		t.Errorf("a new file in a package: stale are %q", got)
	}
}

// The command that mends stale BUILD files must not need one of them itself.
func TestMendNeedsNoOtherPackage(t *testing.T) {
	root, err := lint.Root()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(root, "tools", "generate", "BUILD.bazel"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(content), "@gazelle_command//") {
		t.Error("it doesn't name gazelle: has its form changed?")
	}
	for _, label := range regexp.MustCompile(`"(@powercloud)?//[^"]*"`).FindAllString(string(content), -1) {
		if label != `"//visibility:public"` {
			t.Errorf("%s needs %s, which Bazel can't load while its BUILD file is stale", Mend, label)
		}
	}
}
