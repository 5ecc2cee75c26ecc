//go:build linux && (amd64 || arm64)

package crash_test

import (
	"os"
	"path/filepath"
	"testing"
)

// versions are the contents that an object may have: names of files in
// contents, and absent.
type versions []string

const absent = ""

// scenario is a command that is interrupted.
type scenario struct {
	args    []string
	prepare func(*testing.T, cluster) // makes what the command finds, once
	each    func(*testing.T, cluster) // and, again before every run, what a copy does not keep
	// What each object may read as after an interruption, and what it must
	// read as once the command has succeeded. Objects that the command has
	// nothing to do with are in untouched.
	during map[string]versions
	after  map[string]versions
}

// untouched are acknowledged objects that every scenario starts with.
func untouched() map[string]versions {
	return map[string]versions{"kept/empty": {"empty"}, "kept/small": {"small-1"}}
}

// storeUntouched stores them.
func storeUntouched(t *testing.T, c cluster) {
	t.Helper()
	for name, versions := range untouched() {
		c.put(t, name, versions[0])
	}
}

func (c cluster) put(t *testing.T, name, file string) {
	t.Helper()
	c.must(t, "put", name, "files/"+file)
}

func scenarios() map[string]scenario {
	return map[string]scenario{
		"Put": {
			args:   []string{"put", "new", "files/large-2"},
			during: map[string]versions{"new": {absent, "large-2"}},
			after:  map[string]versions{"new": {"large-2"}},
		},
		"PutTree": {
			args:   []string{"put", "tree", "files/tree"},
			during: map[string]versions{"tree/one": {absent, "tree/one"}, "tree/two": {absent, "tree/two"}},
			after:  map[string]versions{"tree/one": {"tree/one"}, "tree/two": {"tree/two"}},
		},
		"PutKnownContent": {
			args:   []string{"put", "new", "files/small-1"},
			during: map[string]versions{"new": {absent, "small-1"}},
			after:  map[string]versions{"new": {"small-1"}},
		},
		// The content's chunks are garbage that gc has recorded: gc may not
		// delete them under the new object.
		"PutRecordedGarbage": {
			args: []string{"put", "new", "files/small-2"},
			prepare: func(t *testing.T, c cluster) {
				c.put(t, "old", "small-2")
				c.must(t, "rm", "old")
				c.must(t, "gc", "--grace", "0s")
			},
			during: map[string]versions{"new": {absent, "small-2"}, "old": {absent}},
			after:  map[string]versions{"new": {"small-2"}, "old": {absent}},
		},
		"Overwrite": {
			args:    []string{"put", "object", "files/large-2"},
			prepare: func(t *testing.T, c cluster) { c.put(t, "object", "large-1") },
			during:  map[string]versions{"object": {"large-1", "large-2"}},
			after:   map[string]versions{"object": {"large-2"}},
		},
		"Remove": {
			args:    []string{"rm", "object"},
			prepare: func(t *testing.T, c cluster) { c.put(t, "object", "small-2") },
			during:  map[string]versions{"object": {"small-2", absent}},
			after:   map[string]versions{"object": {absent}},
		},
		"Repair": {
			args:    []string{"repair"},
			prepare: damage,
			during:  map[string]versions{"object": {"large-2"}, "gone": {absent}},
			after:   map[string]versions{"object": {"large-2"}, "gone": {absent}},
		},
		"RepairVerify": {
			args: []string{"repair", "--verify"},
			prepare: func(t *testing.T, c cluster) {
				c.put(t, "object", "small-2")
				c.corrupt(t, "a/chunk")
				c.corrupt(t, "c/chunk")
			},
			during: map[string]versions{"object": {"small-2"}},
			after:  map[string]versions{"object": {"small-2"}},
		},
		// Changing the passphrase goes the same way, but for a second of Argon2id.
		"AddRecoveryKey": {
			args: []string{"recovery-key", "add"},
		},
		"CollectFirstRun": {
			args:    []string{"gc", "--grace", "0s"},
			prepare: litter,
			during:  map[string]versions{"object": {"large-1"}, "gone": {absent}},
			after:   map[string]versions{"object": {"large-1"}, "gone": {absent}},
		},
		"CollectSecondRun": {
			args:    []string{"gc", "--grace", "0s"},
			prepare: litter,
			// gc knows a temporary file again by its time and inode.
			each:   func(t *testing.T, c cluster) { c.must(t, "gc", "--grace", "0s") },
			during: map[string]versions{"object": {"large-1"}, "gone": {absent}},
			after:  map[string]versions{"object": {"large-1"}, "gone": {absent}},
		},
		// A tombstone that is half deleted keeps the object removed, and so does none.
		"CollectTombstones": {
			args: []string{"gc", "--tombstones", "--grace", "0s"},
			prepare: func(t *testing.T, c cluster) {
				c.put(t, "gone", "small-2")
				c.must(t, "rm", "gone")
				c.must(t, "gc", "--tombstones", "--grace", "0s")
			},
			during: map[string]versions{"gone": {absent}},
			after:  map[string]versions{"gone": {absent}},
		},
	}
}

// damage leaves b empty and c behind: an object has been replaced, one
// removed, since c was last written to.
func damage(t *testing.T, c cluster) {
	t.Helper()
	c.put(t, "object", "small-2")
	c.put(t, "gone", "small-2")
	if err := os.CopyFS(filepath.Join(c.dir, "behind"), os.DirFS(filepath.Join(c.dir, "c"))); err != nil {
		t.Fatal(err)
	}
	c.put(t, "object", "large-2")
	c.must(t, "rm", "gone")
	for _, dir := range []string{"b", "c"} {
		if err := os.RemoveAll(filepath.Join(c.dir, dir)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(filepath.Join(c.dir, "behind"), filepath.Join(c.dir, "c")); err != nil {
		t.Fatal(err)
	}
}

// corrupt changes a byte in the first file below a folder.
func (c cluster) corrupt(t *testing.T, folder string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(c.dir, folder, "*", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no file to damage in %s: %v", folder, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(files[0], data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// litter leaves chunks that no object uses, of a removed object and of an
// overwritten one, and a temporary file of an interrupted write.
func litter(t *testing.T, c cluster) {
	t.Helper()
	c.put(t, "object", "large-2")
	c.put(t, "object", "large-1")
	c.put(t, "gone", "small-2")
	c.must(t, "rm", "gone")
	c.interruptPut(t)
}
