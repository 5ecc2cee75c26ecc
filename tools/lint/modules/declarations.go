package modules

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"powercloud.unidatum.com/tools/lint"
)

// Declarations checks that WORKSPACE and this tree's extensions in MODULE.bazel
// declare the same repositories by this tree's rules, with the same attributes,
// and that MODULE.bazel makes all of them visible. It runs both files and the
// extensions to see that, which no Bazel here could.
func Declarations(tree fs.FS) ([]lint.Problem, error) {
	inWorkspace, err := inWorkspace(tree)
	if err != nil {
		return nil, err
	}
	inModule, visible, err := inModule(tree)
	if err != nil {
		return nil, err
	}
	if len(inModule) == 0 {
		return nil, fmt.Errorf("%s declares no repository by an extension of this tree: has its form changed?", moduleFile)
	}
	dependencies, err := dependencyNames(tree)
	if err != nil {
		return nil, err
	}
	names := maps.Clone(inModule)
	maps.Copy(names, inWorkspace)
	var problems []lint.Problem
	report := func(format string, arguments ...any) {
		problems = append(problems, lint.Problem{File: moduleFile, What: fmt.Sprintf(format, arguments...), Mend: "write the same in both by hand"})
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		a, isInModule := inModule[name]
		b, isInWorkspace := inWorkspace[name]
		switch {
		case !isInWorkspace:
			report("the repository %s is declared here and not in %s", name, workspaceFile)
		case !isInModule && dependencies[name]:
		case !isInModule:
			report("the repository %s is declared in %s and not here", name, workspaceFile)
		case a.rule != b.rule:
			report("the repository %s is a %s here and a %s in %s", name, a.rule, b.rule, workspaceFile)
		default:
			for _, attribute := range slices.Sorted(maps.Keys(a.attributes)) {
				if x, y := a.attributes[attribute], b.attributes[attribute]; x != y {
					report("the repository %s has the %s %s here and %s in %s", name, attribute, x, y, workspaceFile)
				}
			}
		}
	}
	if declared := slices.Sorted(maps.Keys(inModule)); !slices.Equal(declared, visible) {
		report("this tree's extensions declare %q, and use_repo names %q", declared, visible)
	}
	return problems, nil
}

// dependencyNames returns the names by which MODULE.bazel refers to modules.
func dependencyNames(tree fs.FS) (map[string]bool, error) {
	file, err := parse(tree, moduleFile)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, rule := range file.Rules("bazel_dep") {
		name := rule.AttrString("repo_name")
		if name == "" {
			name = rule.AttrString("name")
		}
		names[name] = true
	}
	return names, nil
}
