// Package modules checks that MODULE.bazel and WORKSPACE describe the same
// build: the same versions of the same modules, and the Go modules that BUILD
// files mention.
package modules

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/bazelbuild/buildtools/build"

	"powercloud.unidatum.com/tools/lint"
	"powercloud.unidatum.com/tools/lint/buildfiles"
)

const (
	moduleFile    = "MODULE.bazel"
	workspaceFile = "WORKSPACE"
)

// pin is a module and what fixes it. Fields that a file doesn't state are
// empty.
type pin struct {
	version, sum string
}

// Parity checks that both files pin the same versions.
func Parity(tree fs.FS) ([]lint.Problem, error) {
	module, err := parse(tree, moduleFile)
	if err != nil {
		return nil, err
	}
	workspace, err := parse(tree, workspaceFile)
	if err != nil {
		return nil, err
	}
	inModule, inWorkspace := modulePins(module), workspacePins(workspace)
	if len(inWorkspace) == 0 {
		return nil, fmt.Errorf("%s pins no module: has its form changed?", workspaceFile)
	}
	standins, err := standinPins(tree, workspace)
	if err != nil {
		return nil, err
	}
	maps.Copy(inWorkspace, standins)
	names := map[string]bool{}
	for name := range inModule {
		names[name] = true
	}
	for name := range inWorkspace {
		names[name] = true
	}
	var problems []lint.Problem
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if a, b := inModule[name], inWorkspace[name]; a != b {
			problems = append(problems, lint.Problem{
				File: moduleFile,
				What: fmt.Sprintf("%s is %s here and %s in %s", name, a, b, workspaceFile),
				Mend: "write the same version and hash in both by hand (a stand-in states its version in its MODULE.bazel)",
			})
		}
	}
	return problems, nil
}

// String describes a pin.
func (p pin) String() string {
	if p == (pin{}) {
		return "absent"
	}
	return strings.TrimSpace(p.version + " " + p.sum)
}

// parse reads a Starlark file.
func parse(tree fs.FS, name string) (*build.File, error) {
	content, err := fs.ReadFile(tree, name)
	if err != nil {
		return nil, err
	}
	parseFile := build.ParseWorkspace
	if path.Base(name) == moduleFile {
		parseFile = build.ParseModule
	}
	file, err := parseFile(name, content)
	if err != nil {
		return nil, fmt.Errorf("parsing %s: %w", name, err)
	}
	return file, nil
}

// modulePins returns what MODULE.bazel pins.
func modulePins(file *build.File) map[string]pin {
	pins := map[string]pin{}
	for _, rule := range file.Rules("bazel_dep") {
		pins[rule.AttrString("name")] = pin{version: rule.AttrString("version")}
	}
	for _, rule := range file.Rules("module_archives.archive") {
		pins[rule.AttrString("importpath")] = pin{rule.AttrString("version"), rule.AttrString("sum")}
	}
	for _, rule := range file.Rules("module_archives.gazelle") {
		pins["gazelle's command"] = pin{rule.AttrString("version"), rule.AttrString("sum")}
	}
	for _, rule := range file.Rules("go_sdk.wrap") {
		pins["go"] = pin{version: rule.AttrString("version")}
	}
	return pins
}

// workspacePins returns what WORKSPACE pins, under MODULE.bazel's names.
func workspacePins(file *build.File) map[string]pin {
	pins := map[string]pin{}
	for _, rule := range file.Rules("module_archive") {
		version, sum := rule.AttrString("version"), rule.AttrString("sum")
		if rule.AttrString("importpath") == "github.com/bazelbuild/rules_go" {
			pins["rules_go"] = pin{version: strings.TrimPrefix(version, "v")}
			continue
		}
		pins[rule.AttrString("importpath")] = pin{version, sum}
	}
	for _, rule := range file.Rules("gazelle_command") {
		version := rule.AttrString("version")
		pins["gazelle"] = pin{version: strings.TrimPrefix(version, "v")}
		pins["gazelle's command"] = pin{version, rule.AttrString("sum")}
	}
	for _, rule := range file.Rules("go_wrap_sdk") {
		pins["go"] = pin{version: rule.AttrString("version")}
	}
	return pins
}

// standinPins returns the modules for which WORKSPACE has a stand-in in the tree
// and which MODULE.bazel must name as well, since BUILD files use them. Such a
// stand-in has a MODULE.bazel that states the version whose interface it has.
func standinPins(tree fs.FS, file *build.File) (map[string]pin, error) {
	pins := map[string]pin{}
	for _, rule := range file.Rules("local_repository") {
		name := path.Join(rule.AttrString("path"), moduleFile)
		if path.IsAbs(name) {
			continue // Debian's.
		}
		standin, err := parse(tree, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, module := range standin.Rules("module") {
			pins[module.AttrString("name")] = pin{version: module.AttrString("version")}
		}
	}
	return pins, nil
}

// Dependencies checks that MODULE.bazel imports the repository of each Go
// module that a BUILD file mentions, and no other, and that go.mod requires
// each.
func Dependencies(tree fs.FS) ([]lint.Problem, error) {
	wanted, err := Mentioned(tree)
	if err != nil {
		return nil, err
	}
	file, err := parse(tree, moduleFile)
	if err != nil {
		return nil, err
	}
	imported, err := imports(file)
	if err != nil {
		return nil, err
	}
	required, err := required(tree)
	if err != nil {
		return nil, err
	}
	var problems []lint.Problem
	if got := imported.names(); !slices.Equal(got, wanted) {
		problems = append(problems, lint.Problem{
			File: moduleFile,
			What: fmt.Sprintf("use_repo imports %s, but BUILD files mention %s", strings.Join(got, " "), strings.Join(wanted, " ")),
			Mend: buildfiles.Mend,
		})
	}
	for _, name := range wanted {
		if !required[name] {
			problems = append(problems, lint.Problem{
				File: "go.mod",
				What: fmt.Sprintf("it requires no module whose repository is %s, which a BUILD file mentions", name),
				Mend: "go get the module, then " + buildfiles.Mend,
			})
		}
	}
	return problems, nil
}

var repository = regexp.MustCompile(`"@([a-z0-9_]+)//`)

// Mentioned returns the names of the Go modules' repositories that the BUILD
// files of the tree mention, sorted.
func Mentioned(tree fs.FS) ([]string, error) {
	files, err := lint.Files(tree, func(name string) bool {
		return name == "BUILD.bazel" || strings.HasSuffix(name, "/BUILD.bazel")
	})
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, name := range files {
		content, err := fs.ReadFile(tree, name)
		if err != nil {
			return nil, err
		}
		for _, match := range repository.FindAllSubmatch(content, -1) {
			if name := string(match[1]); isModule(name) {
				found[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// isModule tells the repository of a Go module by its name, which begins with
// its host's name backwards.
func isModule(name string) bool {
	top, _, _ := strings.Cut(name, "_")
	return slices.Contains([]string{"com", "org", "net", "co", "in", "dev", "io"}, top) && name != "io_bazel_rules_go"
}
