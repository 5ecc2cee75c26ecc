//go:build linux && (amd64 || arm64)

package powercut

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"powercloud.unidatum.com/tests/crash/ptrace"
)

// Journal follows the changes that a program makes below one directory. Its
// Enter and Exit are called as package ptrace calls its functions: by one
// goroutine at a time.
type Journal struct {
	top      string
	root     *node
	syncs    map[int]sync // by thread, those in progress
	problems []string
}

// node is a file or a directory. It keeps its identity when it is renamed.
type node struct {
	// Of a directory: names as the program sees them, names as they last, and
	// the changes between the two in their order.
	dir     bool
	names   map[string]*node
	lasting map[string]*node
	pending []change

	// The number of changes to the names or to the content, and how many of
	// them were synced.
	changes int
	synced  int

	// Of a file: its content when it was last synced.
	content []byte
}

// change is one name that was made or, with a nil node, removed.
type change struct {
	name string
	node *node
}

// sync is an fsync between its entry and its exit: what it covers is what was
// there at its entry.
type sync struct {
	node    *node
	changes int
}

func newDir() *node {
	return &node{dir: true, names: map[string]*node{}, lasting: map[string]*node{}}
}

// New reads the tree below a directory; all of it counts as synced.
func New(top string) (*Journal, error) {
	root, err := load(top)
	if err != nil {
		return nil, err
	}
	return &Journal{top: top, root: root, syncs: map[int]sync{}}, nil
}

func load(path string) (*node, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	dir := newDir()
	for _, entry := range entries {
		child, name := &node{}, filepath.Join(path, entry.Name())
		if entry.IsDir() {
			child, err = load(name)
		} else {
			child.content, err = os.ReadFile(name)
		}
		if err != nil {
			return nil, err
		}
		dir.names[entry.Name()] = child
		dir.lasting[entry.Name()] = child
	}
	return dir, nil
}

// find returns the node that a path leads to and the directory that names
// it; node is nil when the name is free, dir when the path is not below top.
func (j *Journal) find(path string) (dir *node, name string, n *node) {
	relative, err := filepath.Rel(j.top, path)
	if err != nil || relative == ".." || strings.HasPrefix(relative, "../") {
		return nil, "", nil
	}
	if relative == "." {
		return nil, "", j.root
	}
	dir = j.root
	parts := strings.Split(relative, "/")
	for _, part := range parts[:len(parts)-1] {
		if dir = dir.names[part]; dir == nil || !dir.dir {
			return nil, "", nil
		}
	}
	name = parts[len(parts)-1]
	return dir, name, dir.names[name]
}

// set makes or removes a name; it lasts when the directory is synced.
func (n *node) set(name string, child *node) {
	if child == nil {
		delete(n.names, name)
	} else {
		n.names[name] = child
	}
	n.pending = append(n.pending, change{name, child})
	n.changes++
}

// Enter takes note of a call that is about to be made.
func (j *Journal) Enter(c ptrace.Call) {
	dir, name, n := j.find(c.Path)
	switch c.Op {
	case ptrace.OpWrite, ptrace.OpTruncate:
		if n != nil {
			n.changes++ // an fsync from now on may or may not cover it
		}
	case ptrace.OpSync:
		if n != nil {
			j.syncs[c.PID] = sync{n, n.changes}
		}
	case ptrace.OpRename, ptrace.OpLink:
		if n != nil && !n.dir && n.synced < n.changes {
			j.problems = append(j.problems, fmt.Sprintf("%s before %s was synced", c, name))
		}
	case ptrace.OpSyncAll, ptrace.OpSymlink, ptrace.OpMknod:
		if dir != nil || c.Op == ptrace.OpSyncAll {
			j.problems = append(j.problems, fmt.Sprintf("%s: the model has no such call", c))
		}
	}
}

// Exit takes note of what a call did.
func (j *Journal) Exit(c ptrace.Call, result int64, err error) {
	started, syncing := j.syncs[c.PID]
	delete(j.syncs, c.PID)
	if err != nil {
		return
	}
	dir, name, n := j.find(c.Path)
	switch c.Op {
	case ptrace.OpOpen:
		if c.Create && n == nil && dir != nil {
			dir.set(name, &node{changes: 1})
		} else if n != nil && c.Truncate {
			n.changes++
		}
	case ptrace.OpWrite, ptrace.OpTruncate:
		if n != nil {
			n.changes++
		}
	case ptrace.OpSync:
		if syncing {
			j.synced(c, started)
		}
	case ptrace.OpRename, ptrace.OpLink:
		target, newName, _ := j.find(c.NewPath)
		if n == nil || target == nil {
			return
		}
		target.set(newName, n)
		if c.Op == ptrace.OpRename {
			dir.set(name, nil)
		}
	case ptrace.OpUnlink, ptrace.OpRmdir:
		if n != nil && dir != nil {
			dir.set(name, nil)
		}
	case ptrace.OpMkdir:
		if dir != nil && n == nil {
			dir.set(name, newDir())
		}
	}
}

// synced makes last what an fsync covers.
func (j *Journal) synced(c ptrace.Call, s sync) {
	n := s.node
	if !n.dir {
		content, err := os.ReadFile(fmt.Sprintf("/proc/%d/fd/%d", c.PID, c.FD))
		if err != nil {
			j.problems = append(j.problems, fmt.Sprintf("%s: reading what was synced: %v", c, err))
			return
		}
		n.content, n.synced = content, max(n.synced, s.changes)
		return
	}
	// Another sync of this directory may have been faster.
	covered := max(s.changes-n.synced, 0)
	for _, change := range n.pending[:covered] {
		apply(n.lasting, change)
	}
	n.pending = n.pending[covered:]
	n.synced += covered
}

func apply(names map[string]*node, c change) {
	if c.node == nil {
		delete(names, c.name)
	} else {
		names[c.name] = c.node
	}
}

// Problems lists the renames of files that were not synced, and what the
// model can't follow.
func (j *Journal) Problems() []string { return j.problems }

// Pending lists the paths whose names were made or removed without a sync of
// their directory since, in no particular order.
func (j *Journal) Pending() []string {
	var list []string
	var walk func(string, *node)
	walk = func(path string, n *node) {
		for _, change := range n.pending {
			list = append(list, filepath.Join(path, change.name))
		}
		for name, child := range n.names {
			if child.dir {
				walk(filepath.Join(path, name), child)
			}
		}
	}
	walk(j.top, j.root)
	return list
}
