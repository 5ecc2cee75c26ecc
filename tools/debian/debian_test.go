package debian

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"powercloud.unidatum.com/tools/debian/lockfile"
)

// workspace is a Bazel workspace of its own that fetches the set "hello" of
// several lock files.
type workspace struct {
	root, outputBase string
	bazel            string
	// cache is XDG_CACHE_HOME, where the rule keeps its downloads.
	cache string
	// aptConfig, when not empty, is an APT configuration beside the machine's.
	aptConfig string
}

func newWorkspace(t *testing.T) *workspace {
	t.Helper()
	for _, tool := range []string{"bazel", "apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the rule needs %s, which is not here", tool)
		}
	}
	bazel, _ := exec.LookPath("bazel")
	w := &workspace{root: t.TempDir(), outputBase: filepath.Join(t.TempDir(), "base"), bazel: bazel, cache: t.TempDir()}
	w.write(t, "WORKSPACE", `load("//:debian.bzl", "debian_packages")`+"\n")
	w.write(t, "BUILD.bazel", "")
	w.write(t, "debian.bzl", read(t, "debian.bzl"))
	t.Cleanup(func() {
		if out, err := w.command("shutdown").CombinedOutput(); err != nil {
			t.Errorf("bazel shutdown: %v: %s", err, out)
		}
		// What Bazel unpacked may be read-only, which t.TempDir can't remove.
		if out, err := exec.Command("chmod", "-R", "u+w", w.outputBase).CombinedOutput(); err != nil {
			t.Errorf("chmod: %v: %s", err, out)
		}
	})
	return w
}

// declare declares the repository of this name, which reads its own lock file.
func (w *workspace) declare(t *testing.T, name, lock string) {
	t.Helper()
	w.write(t, name+".lock.json", lock)
	w.write(t, "WORKSPACE", read(t, filepath.Join(w.root, "WORKSPACE"))+
		`debian_packages(name = "`+name+`", set = "hello", lock = "//:`+name+`.lock.json")`+"\n")
}

// fetch builds all files of the repository and returns what Bazel said.
func (w *workspace) fetch(name string) (string, error) {
	out, err := w.command("build", "--color=no", "--curses=no", "@"+name+"//:files", "@"+name+"//:debs").CombinedOutput()
	return string(out), err
}

func (w *workspace) command(arguments ...string) *exec.Cmd {
	// The system rc stays: Debian keeps there where Bazel itself lies.
	startup := []string{"--nohome_rc", "--output_base=" + w.outputBase, "--max_idle_secs=60"}
	command := exec.Command(w.bazel, append(startup, arguments...)...)
	command.Dir = w.root
	command.Env = append(os.Environ(), "XDG_CACHE_HOME="+w.cache)
	if w.aptConfig != "" {
		command.Env = append(command.Env, "APT_CONFIG="+w.aptConfig)
	}
	return command
}

// path is the place of a file in a fetched repository.
func (w *workspace) path(repository, file string) string {
	return filepath.Join(w.outputBase, "external", repository, file)
}

func (w *workspace) write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.root, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

const (
	deb     = "debs/hello_2.10-3_amd64.deb"
	program = "packages/hello/usr/bin/hello"
)

func TestRule(t *testing.T) {
	w := newWorkspace(t)
	t.Run("fetch", func(t *testing.T) { testFetch(t, w) })
	t.Run("packed", func(t *testing.T) { testPacked(t, w) })
	t.Run("refuse", func(t *testing.T) { testRefuse(t, w) })
}

// testFetch fetches one small package from the mirror, twice, and from the
// cache of downloads.
func testFetch(t *testing.T, w *workspace) {
	lock := read(t, "packages.lock.json")
	parsed, err := lockfile.Parse([]byte(lock))
	if err != nil {
		t.Fatal(err)
	}
	fetch := func(name string) string {
		t.Helper()
		w.declare(t, name, lock)
		if out, err := w.fetch(name); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if out, err := exec.Command(w.path(name, program)).CombinedOutput(); string(out) != "Hello, world!\n" {
			t.Errorf("the program of %s prints %q (%v)", name, out, err)
		}
		return read(t, w.path(name, deb))
	}
	first := fetch("first")
	firstCache := w.cache
	w.cache = t.TempDir()
	if fetch("second") != first {
		t.Error("the second fetch brought other bytes than the first")
	}

	// Without any source for APT, only the cache can have it.
	w.noSources(t)
	w.cache = firstCache
	if fetch("cached") != first {
		t.Error("the cache brought other bytes than the mirror")
	}

	// A damaged cache is not believed, but fetched again.
	w.aptConfig = ""
	cached := filepath.Join(firstCache, "powercloud/debian", hash(parsed))
	if err := os.WriteFile(cached, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if fetch("healed") != first || read(t, cached) != first {
		t.Error("the damaged cache was not mended")
	}
}

// testPacked fetches the package for a root: only the .deb file.
func testPacked(t *testing.T, w *workspace) {
	w.write(t, "packed.lock.json", read(t, "packages.lock.json"))
	w.write(t, "WORKSPACE", read(t, filepath.Join(w.root, "WORKSPACE"))+
		`debian_packages(name = "packed", set = "hello", lock = "//:packed.lock.json", unpack = False)`+"\n")
	if out, err := w.command("build", "--color=no", "--curses=no", "@packed//:debs").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := os.Stat(w.path("packed", deb)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(w.path("packed", "packages")); err == nil {
		t.Error("the package was unpacked")
	}
}

// hash is the SHA-256 of the package hello.
func hash(lock *lockfile.Lock) string {
	for _, set := range lock.Sets {
		if set.Name == "hello" {
			return set.Packages[0].SHA256
		}
	}
	return "no set hello"
}

// noSources takes every source away from APT.
func (w *workspace) noSources(t *testing.T) {
	t.Helper()
	w.write(t, "apt.conf", "Dir::Etc::sourcelist \"/dev/null\";\nDir::Etc::sourceparts \"/dev/null\";\n")
	w.aptConfig = filepath.Join(w.root, "apt.conf")
}

// testRefuse fetches with lock files that must be refused, each with a message
// of one line, and before anything is unpacked.
func testRefuse(t *testing.T, w *workspace) {
	good := read(t, "packages.lock.json")
	t.Run("wrong hash", func(t *testing.T) {
		w.declare(t, "wrong_hash", change(t, good, func(p map[string]any) { p["sha256"] = strings.Repeat("0", 64) }))
		refuses(t, w, "wrong_hash", `the Debian package hello_2.10-3_amd64.deb has the SHA-256 2e6e2f1a0007dc43bc91c273fd36e91e40a4f1c2765a03eca68b70a42103878a, `+
			`but //:wrong_hash.lock.json has `+strings.Repeat("0", 64)+`: if the lock file is right, the mirror isn't`)
	})
	t.Run("no such version", func(t *testing.T) {
		w.cache = t.TempDir()
		w.declare(t, "wrong_version", change(t, good, func(p map[string]any) { p["version"], p["file"] = "9.9", "hello_9.9_amd64.deb" }))
		refuses(t, w, "wrong_version", `cannot fetch Debian packages of the set hello: E: Version '9.9' for 'hello' was not found`)
	})
	t.Run("no source", func(t *testing.T) {
		w.noSources(t)
		w.cache = t.TempDir()
		w.declare(t, "no_source", good)
		refuses(t, w, "no_source", `cannot fetch Debian packages of the set hello: E: Unable to locate package hello`)
	})
	for name, test := range map[string]struct {
		change func(p map[string]any)
		want   string
	}{
		"unknown_field": {func(p map[string]any) { p["extra"] = 1 },
			"a package must have the fields name, version, architecture, sha256, file and no others"},
		"missing_field":   {func(p map[string]any) { delete(p, "sha256") }, "must have the fields"},
		"short_hash":      {func(p map[string]any) { p["sha256"] = "2e6e" }, `has the SHA-256 "2e6e"`},
		"option_name":     {func(p map[string]any) { p["name"] = "--help" }, `has the name "--help"`},
		"option_version":  {func(p map[string]any) { p["version"] = "-x" }, `has the version "-x"`},
		"outside_file":    {func(p map[string]any) { p["file"] = "../hello.deb" }, `has the file "../hello.deb"`},
		"other_processor": {func(p map[string]any) { p["architecture"] = "i386" }, `is for "i386" in a set for amd64`},
	} {
		t.Run(name, func(t *testing.T) {
			w.declare(t, name, change(t, good, test.change))
			refuses(t, w, name, test.want)
		})
	}
	t.Run("no set", func(t *testing.T) {
		w.declare(t, "no_set", "{\"suite\": \"bookworm\", \"sets\": []}\n")
		refuses(t, w, "no_set", "//:no_set.lock.json has 0 sets named hello instead of one")
	})
}

// refuses fails the test unless the repository can't be fetched, for a reason
// that is one line with this text, and nothing of it was unpacked.
func refuses(t *testing.T, w *workspace, name, text string) {
	t.Helper()
	out, err := w.fetch(name)
	if err == nil {
		t.Fatalf("the fetch succeeded: %s", out)
	}
	found := false
	for line := range strings.Lines(out) {
		found = found || strings.Contains(line, "Error in fail: ") && strings.Contains(line, text)
	}
	if !found {
		t.Errorf("no line with %q in: %s", text, out)
	}
	if _, err := os.Stat(w.path(name, "packages")); err == nil {
		t.Error("something was unpacked")
	}
}

// change returns a lock file with only the set hello, and its package changed.
func change(t *testing.T, lock string, edit func(p map[string]any)) string {
	t.Helper()
	var content struct {
		Suite string           `json:"suite"`
		Sets  []map[string]any `json:"sets"`
	}
	if err := json.Unmarshal([]byte(lock), &content); err != nil {
		t.Fatal(err)
	}
	for _, set := range content.Sets {
		if set["name"] == "hello" {
			content.Sets = []map[string]any{set}
			edit(set["packages"].([]any)[0].(map[string]any))
		}
	}
	var changed bytes.Buffer
	if err := json.NewEncoder(&changed).Encode(content); err != nil {
		t.Fatal(err)
	}
	return changed.String()
}
