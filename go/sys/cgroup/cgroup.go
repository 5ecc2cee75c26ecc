// Package cgroup makes and ends control groups of version 2. See the kernel's
// Documentation/admin-guide/cgroup-v2.rst.
package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Root is where the tree of groups is mounted.
const Root = "/sys/fs/cgroup"

// Delegate lets the groups right below a folder use controllers, those that the
// kernel has. It returns the ones that it lacks.
func Delegate(dir string, controllers ...string) (missing []string, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return nil, fmt.Errorf("read which controllers %s has: %w", dir, err)
	}
	available := strings.Fields(string(text))
	var words []string
	for _, c := range controllers {
		if !slices.Contains(available, c) {
			missing = append(missing, c)
			continue
		}
		words = append(words, "+"+c)
	}
	if len(words) == 0 {
		return missing, nil
	}
	return missing, write(dir, "cgroup.subtree_control", strings.Join(words, " "))
}

// Group is one control group.
type Group struct {
	// Path is its folder.
	Path string
}

// Make returns the group with a name below a folder. It may exist.
func Make(dir, name string) (*Group, error) {
	if name == "" || strings.ContainsRune(name, '/') || strings.HasPrefix(name, ".") {
		return nil, fmt.Errorf("make a control group: %q can't be its name", name)
	}
	path := filepath.Join(dir, name)
	if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("make a control group: %w", err)
	}
	return &Group{Path: path}, nil
}

// Set writes one of the group's files, such as "memory.min".
func (g *Group) Set(file, value string) error { return write(g.Path, file, value) }

// Open opens the folder, for starting a process in the group (CLONE_INTO_CGROUP).
func (g *Group) Open() (*os.File, error) {
	fd, err := unix.Open(g.Path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open the control group %s: %w", g.Path, err)
	}
	return os.NewFile(uintptr(fd), g.Path), nil
}

// Kill kills every process in the group and below it.
func (g *Group) Kill() error { return write(g.Path, "cgroup.kill", "1") }

// Populated tells whether a process is in the group or below it.
func (g *Group) Populated() (bool, error) {
	text, err := os.ReadFile(filepath.Join(g.Path, "cgroup.events"))
	if err != nil {
		return false, fmt.Errorf("read the state of the control group %s: %w", g.Path, err)
	}
	return populated(string(text)), nil
}

func populated(events string) bool {
	return slices.Contains(strings.Split(events, "\n"), "populated 1")
}

// WaitEmpty waits until no process is left in the group or ctx is done. The
// kernel reports each change of cgroup.events to poll(2).
func (g *Group) WaitEmpty(ctx context.Context) error {
	f, err := os.Open(filepath.Join(g.Path, "cgroup.events"))
	if err != nil {
		return fmt.Errorf("watch the control group %s: %w", g.Path, err)
	}
	defer func() { _ = f.Close() }()
	for {
		b := make([]byte, 512)
		n, err := f.ReadAt(b, 0)
		if n == 0 && err != nil {
			return fmt.Errorf("watch the control group %s: %w", g.Path, err)
		}
		if !populated(string(b[:n])) {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("wait for the control group %s to be empty: %w", g.Path, ctx.Err())
		}
		// A short wait, so that ctx is looked at.
		events := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLPRI}}
		if _, err := unix.Poll(events, 100); err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("watch the control group %s: %w", g.Path, err)
		}
	}
}

// Remove removes the group, which must be empty.
func (g *Group) Remove() error {
	if err := os.Remove(g.Path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove a control group: %w", err)
	}
	return nil
}

// write writes a file that the kernel has made.
func write(dir, file, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(value)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("set %s of the control group %s to %q: %w", file, dir, value, err)
	}
	return nil
}
