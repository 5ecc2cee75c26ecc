// Package modules orders the modules of a Linux kernel so that each comes after
// those that it needs, for tests that boot a distribution's kernel. The
// system's own kernel has no modules.
package modules

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Order returns the paths of the modules of these names, and of all that they
// need, below a folder such as lib/modules/6.1.0-1-amd64, in an order in which
// they can be loaded. A name is a file's without ".ko".
func Order(folder string, names ...string) ([]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if name, ok := strings.CutSuffix(filepath.Base(path), ".ko"); ok && err == nil && !entry.IsDir() {
			files[normal(name)] = path
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for kernel modules: %w", err)
	}
	o := order{files: files, state: map[string]bool{}}
	for _, name := range names {
		if err := o.add(name); err != nil {
			return nil, fmt.Errorf("order kernel modules: %w", err)
		}
	}
	return o.paths, nil
}

// normal is the name that the kernel has for a module.
func normal(name string) string { return strings.ReplaceAll(name, "-", "_") }

// order is a depth-first walk.
type order struct {
	files map[string]string
	// state has what was begun, and whether it is done.
	state map[string]bool
	paths []string
}

func (o *order) add(name string) error {
	name = normal(name)
	if done, begun := o.state[name]; begun {
		if !done {
			return fmt.Errorf("%s needs itself", name)
		}
		return nil
	}
	o.state[name] = false
	path, ok := o.files[name]
	if !ok {
		return fmt.Errorf("there is no module %s", name)
	}
	needed, err := needs(path)
	if err != nil {
		return err
	}
	for _, other := range needed {
		if err := o.add(other); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	o.state[name] = true
	o.paths = append(o.paths, path)
	return nil
}

// needs returns the names of the modules that a module needs.
func needs(path string) ([]string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	file, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	section := file.Section(".modinfo")
	if section == nil {
		return nil, fmt.Errorf("%s is no kernel module", path)
	}
	information, err := section.Data()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var names []string
	for field := range strings.SplitSeq(string(information), "\x00") {
		if list, ok := strings.CutPrefix(field, "depends="); ok && list != "" {
			names = append(names, strings.Split(list, ",")...)
		}
	}
	return names, nil
}
