//go:build linux && (amd64 || arm64)

package powercut

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// State is what one power cut leaves: the content of each file by its path
// below the journal's directory. Directories have a nil content and a path
// that ends in a slash.
type State map[string][]byte

// Cut returns what would be left if the power failed now. For each directory
// with names that were not synced, keep tells whether they happen to last.
func (j *Journal) Cut(keep func(dir string) bool) State {
	state := State{}
	var walk func(string, *node)
	walk = func(path string, n *node) {
		names := n.lasting
		if len(n.pending) > 0 && keep(path) {
			names = maps.Clone(names)
			for _, change := range n.pending {
				apply(names, change)
			}
		}
		for name, child := range names {
			below := filepath.Join(path, name)
			if child.dir {
				state[below+"/"] = nil
				walk(below, child)
			} else {
				state[below] = child.content
			}
		}
	}
	walk("", j.root)
	return state
}

// Sum is a hash of the state, to tell states apart.
func (s State) Sum() [sha256.Size]byte {
	h := sha256.New()
	for _, path := range slices.Sorted(maps.Keys(s)) {
		fmt.Fprintf(h, "%q %d %p\n", path, len(s[path]), s[path])
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// Write makes the state's files in a new directory.
func (s State) Write(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(s)) {
		var err error
		if target := filepath.Join(dir, path); path[len(path)-1] == '/' {
			err = os.Mkdir(target, 0o700)
		} else {
			err = os.WriteFile(target, s[path], 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
