package modules

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	starlarkjson "go.starlark.net/lib/json"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
	"go.starlark.net/syntax"
)

// A declaration is the call of one of this tree's rules that declares a
// repository.
type declaration struct {
	rule string
	// attributes is how Starlark would print them, by name.
	attributes map[string]string
}

// evaluation runs the files that declare repositories as Bazel would, as far as
// they declare them: rules only record what they are called with.
type evaluation struct {
	tree     fs.FS
	loaded   map[string]starlark.StringDict
	declared map[string]declaration
	// uses are the extensions that MODULE.bazel uses, in this order.
	uses []*extensionUse
}

func newEvaluation(tree fs.FS) *evaluation {
	return &evaluation{tree: tree, loaded: map[string]starlark.StringDict{}, declared: map[string]declaration{}}
}

// run runs one file.
func (e *evaluation) run(name string, predeclared starlark.StringDict) (starlark.StringDict, error) {
	content, err := fs.ReadFile(e.tree, name)
	if err != nil {
		return nil, err
	}
	thread := &starlark.Thread{Name: name, Load: e.load}
	return starlark.ExecFileOptions(&syntax.FileOptions{}, thread, name, content, predeclared)
}

// load loads a file of this tree. What comes from elsewhere declares nothing
// that is looked at here.
func (e *evaluation) load(thread *starlark.Thread, label string) (starlark.StringDict, error) {
	name, ok := e.path(thread.Name, label)
	if !ok {
		return e.foreign(thread.Name, label)
	}
	if globals, ok := e.loaded[name]; ok {
		if globals == nil {
			return nil, fmt.Errorf("%s loads itself", name)
		}
		return globals, nil
	}
	e.loaded[name] = nil
	globals, err := e.run(name, e.bzl())
	if err != nil {
		return nil, err
	}
	for name, value := range globals {
		if rule, ok := value.(*repositoryRule); ok && rule.name == "" {
			rule.name = name
		}
	}
	e.loaded[name] = globals
	return globals, nil
}

// path returns the path of a file in this tree that a label in another one
// names.
func (e *evaluation) path(from, label string) (string, bool) {
	switch {
	case strings.HasPrefix(label, "//"):
		return strings.TrimPrefix(strings.Replace(label[2:], ":", "/", 1), "/"), true
	case strings.HasPrefix(label, ":"):
		return path.Join(path.Dir(from), label[1:]), true
	}
	return "", false
}

// foreign gives every name that the file loads a function that does nothing.
func (e *evaluation) foreign(from, label string) (starlark.StringDict, error) {
	content, err := fs.ReadFile(e.tree, from)
	if err != nil {
		return nil, err
	}
	file, err := (&syntax.FileOptions{}).Parse(from, content, 0)
	if err != nil {
		return nil, err
	}
	globals := starlark.StringDict{}
	for _, statement := range file.Stmts {
		if load, ok := statement.(*syntax.LoadStmt); ok && load.ModuleName() == label {
			for _, name := range load.From {
				globals[name.Name] = nothing(name.Name)
			}
		}
	}
	return globals, nil
}

// nothing is a function that does nothing.
func nothing(name string) *starlark.Builtin {
	return starlark.NewBuiltin(name, func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
		return starlark.None, nil
	})
}

// bzl is what .bzl files find predeclared.
func (e *evaluation) bzl() starlark.StringDict {
	attributes := starlark.StringDict{}
	for _, kind := range []string{"bool", "int", "label", "label_list", "string", "string_dict", "string_list"} {
		attributes[kind] = starlark.NewBuiltin(kind, newAttribute)
	}
	return starlark.StringDict{
		"attr":             starlarkstruct.FromStringDict(starlarkstruct.Default, attributes),
		"json":             starlarkjson.Module,
		"module_extension": starlark.NewBuiltin("module_extension", newExtension),
		"repository_rule":  starlark.NewBuiltin("repository_rule", e.newRule),
		"struct":           starlark.NewBuiltin("struct", starlarkstruct.Make),
		"tag_class":        starlark.NewBuiltin("tag_class", newTagClass),
	}
}

// inWorkspace returns the repositories that WORKSPACE declares.
func inWorkspace(tree fs.FS) (map[string]declaration, error) {
	e := newEvaluation(tree)
	predeclared := starlark.StringDict{}
	for _, name := range []string{"local_repository", "workspace"} {
		predeclared[name] = nothing(name)
	}
	if _, err := e.run(workspaceFile, predeclared); err != nil {
		return nil, fmt.Errorf("evaluate %s: %w", workspaceFile, err)
	}
	return e.declared, nil
}

// inModule returns the repositories that MODULE.bazel has this tree's extensions
// declare, and those of them that it then makes visible.
func inModule(tree fs.FS) (declared map[string]declaration, visible []string, err error) {
	e := newEvaluation(tree)
	predeclared := starlark.StringDict{
		"use_extension": starlark.NewBuiltin("use_extension", e.useExtension),
		"use_repo":      starlark.NewBuiltin("use_repo", useRepo),
	}
	for _, name := range []string{"bazel_dep", "module"} {
		predeclared[name] = nothing(name)
	}
	if _, err := e.run(moduleFile, predeclared); err != nil {
		return nil, nil, fmt.Errorf("evaluate %s: %w", moduleFile, err)
	}
	for _, use := range e.uses {
		if err := e.extend(use); err != nil {
			return nil, nil, fmt.Errorf("evaluate the extension %s of %s: %w", use.name, use.file, err)
		}
		if use.file != "" {
			visible = append(visible, use.repositories...)
		}
	}
	slices.Sort(visible)
	return e.declared, visible, nil
}
