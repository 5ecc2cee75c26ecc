package modules

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/bazelbuild/buildtools/build"
	"golang.org/x/mod/modfile"
)

// importList is the call of use_repo that imports Go modules.
type importList struct {
	call *build.CallExpr
}

// imports finds the call in MODULE.bazel.
func imports(file *build.File) (importList, error) {
	for _, rule := range file.Rules("use_repo") {
		if len(rule.Call.List) == 0 {
			continue
		}
		if extension, ok := rule.Call.List[0].(*build.Ident); ok && extension.Name == "go_deps" {
			return importList{rule.Call}, nil
		}
	}
	return importList{}, fmt.Errorf("%s has no use_repo(go_deps, ...)", moduleFile)
}

// names returns the repositories that are imported.
func (l importList) names() []string {
	var names []string
	for _, argument := range l.call.List[1:] {
		if name, ok := argument.(*build.StringExpr); ok {
			names = append(names, name.Value)
		}
	}
	return names
}

// WithImports returns the text of a MODULE.bazel that imports just the named
// repositories of Go modules.
func WithImports(content []byte, names []string) ([]byte, error) {
	file, err := build.ParseModule(moduleFile, content)
	if err != nil {
		return nil, fmt.Errorf("parsing %s: %w", moduleFile, err)
	}
	list, err := imports(file)
	if err != nil {
		return nil, err
	}
	list.call.List = slices.Clip(list.call.List[:1])
	for _, name := range names {
		list.call.List = append(list.call.List, &build.StringExpr{Value: name})
	}
	list.call.ForceCompact = false
	list.call.End.Comments.Before = nil
	return build.Format(file), nil
}

// required returns the repository names of the modules that go.mod requires.
func required(tree fs.FS) (map[string]bool, error) {
	content, err := fs.ReadFile(tree, "go.mod")
	if err != nil {
		return nil, err
	}
	mod, err := modfile.Parse("go.mod", content, nil)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, require := range mod.Require {
		names[repositoryName(require.Mod.Path)] = true
	}
	return names, nil
}

// repositoryName returns gazelle's name for the repository of a module: its
// host backwards, then its path, with underscores between.
func repositoryName(path string) string {
	host, rest, _ := strings.Cut(strings.ToLower(path), "/")
	parts := strings.Split(host, ".")
	slices.Reverse(parts)
	name := strings.Join(parts, "_")
	if rest != "" {
		name += "_" + rest
	}
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, name)
}
