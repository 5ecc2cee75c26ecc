package modules

import (
	"strings"
	"testing"

	"powercloud.unidatum.com/tools/lint/linttest"
)

func TestWorkspaceParity(t *testing.T)       { linttest.Clean(t, Parity) }
func TestWorkspaceDependencies(t *testing.T) { linttest.Clean(t, Dependencies) }
func TestWorkspaceDeclarations(t *testing.T) { linttest.Clean(t, Declarations) }

const (
	goodModule = `
bazel_dep(name = "gazelle", version = "0.45.0")
bazel_dep(name = "rules_go", version = "0.57.0", repo_name = "io_bazel_rules_go")
bazel_dep(name = "rules_oci", version = "2.2.6")
module_archives.archive(importpath = "golang.org/toolchain", sum = "h1:x", version = "v1")
module_archives.gazelle(name = "gazelle_command", sum = "h1:g", version = "v0.45.0")
go_sdk.wrap(version = "1.26.8")
use_repo(go_deps, "org_golang_x_sys")
`
	goodWorkspace = `
module_archive(name = "io_bazel_rules_go", importpath = "github.com/bazelbuild/rules_go", sum = "h1:r", version = "v0.57.0")
module_archive(name = "go_distribution", importpath = "golang.org/toolchain", sum = "h1:x", version = "v1")
gazelle_command(name = "gazelle_command", sum = "h1:g", version = "v0.45.0")
go_wrap_sdk(name = "go_sdk", version = "1.26.8")
local_repository(name = "bazel_skylib", path = "/usr/share/bazel/tools/skylib")
local_repository(name = "rules_cc", path = "standins/rules_cc")
local_repository(name = "rules_oci", path = "standins/rules_oci")
`
	goodStandin = `module(name = "rules_oci", version = "2.2.6")` + "\n"
	goodGoMod   = "module m\n\ngo 1.26\n\nrequire golang.org/x/sys v0.50.0\n"
	goodBuild   = `go_library(deps = ["//go/a", "@org_golang_x_sys//unix"])` + "\n"
)

// tree returns a good tree with one text in it replaced.
func tree(old, new string) linttest.Tree {
	files := linttest.Tree{
		moduleFile: goodModule, workspaceFile: goodWorkspace, "go.mod": goodGoMod, "go/BUILD.bazel": goodBuild,
		"standins/rules_oci/MODULE.bazel": goodStandin,
	}
	for name, content := range files {
		files[name] = strings.Replace(content, old, new, 1)
	}
	return files
}

func TestParity(t *testing.T) {
	linttest.Finds(t, Parity, tree("", ""))
	linttest.Finds(t, Parity, tree(`name = "rules_go", version = "0.57.0"`, `name = "rules_go", version = "0.58.0"`),
		"MODULE.bazel: rules_go is 0.58.0 here and 0.57.0 in WORKSPACE")
	linttest.Finds(t, Parity, tree(`go_sdk.wrap(version = "1.26.8")`, `go_sdk.wrap(version = "1.26.7")`), "go is 1.26.7")
	linttest.Finds(t, Parity, tree(`sum = "h1:x", version = "v1")
module_archives`, `sum = "h1:y", version = "v1")
module_archives`), "golang.org/toolchain is v1 h1:y here and v1 h1:x")
	linttest.Finds(t, Parity, tree(`bazel_dep(name = "gazelle", version = "0.45.0")`, ""), "gazelle is absent here")
	linttest.Finds(t, Parity, tree(`"rules_oci", version = "2.2.6")`+"\nmodule_archives", `"rules_oci", version = "2.2.5")`+"\nmodule_archives"),
		"rules_oci is 2.2.5 here and 2.2.6 in WORKSPACE")
	linttest.Finds(t, Parity, tree(`local_repository(name = "rules_oci", path = "standins/rules_oci")`, ""),
		"rules_oci is 2.2.6 here and absent in WORKSPACE")
	linttest.Finds(t, Parity, tree(`bazel_dep(name = "rules_oci", version = "2.2.6")`, ""), "rules_oci is absent here and 2.2.6")
	linttest.Refuses(t, Parity, tree(goodStandin, "module("), "standins/rules_oci/MODULE.bazel")
	linttest.Refuses(t, Parity, linttest.Tree{moduleFile: goodModule, workspaceFile: "x = 1\n"}, "pins no module")
	linttest.Refuses(t, Parity, linttest.Tree{moduleFile: goodModule}, workspaceFile)
}

func TestDependencies(t *testing.T) {
	linttest.Finds(t, Dependencies, tree("", ""))
	linttest.Finds(t, Dependencies, tree(`use_repo(go_deps, "org_golang_x_sys")`, `use_repo(go_deps, "org_golang_x_net")`),
		"use_repo imports org_golang_x_net, but BUILD files mention org_golang_x_sys")
	linttest.Finds(t, Dependencies, tree("require golang.org/x/sys v0.50.0", ""), "go.mod: it requires no module")
	linttest.Refuses(t, Dependencies, tree("use_repo", "use_repos"), "has no use_repo")
}

func TestWithImports(t *testing.T) {
	got, err := WithImports([]byte(goodModule), []string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	want := "use_repo(\n    go_deps,\n    \"a\",\n    \"b\",\n)\n"
	if one := `use_repo(go_deps, "a", "b")`; !strings.Contains(string(got), want) && !strings.Contains(string(got), one) {
		t.Errorf("MODULE.bazel is now\n%s\nand doesn't have\n%s", got, want)
	}
}

func TestRepositoryName(t *testing.T) {
	for path, want := range map[string]string{
		"golang.org/x/sys":                "org_golang_x_sys",
		"github.com/urfave/cli/v3":        "com_github_urfave_cli_v3",
		"honnef.co/go/tools":              "co_honnef_go_tools",
		"github.com/rogpeppe/go-internal": "com_github_rogpeppe_go_internal",
	} {
		if got := repositoryName(path); got != want {
			t.Errorf("%s has the repository %s, want %s", path, got, want)
		}
	}
}
