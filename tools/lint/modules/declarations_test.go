package modules

import (
	"strings"
	"testing"

	"powercloud.unidatum.com/tools/lint/linttest"
)

// declarations returns a tree whose files declare the same, with one text in
// one of them replaced.
func declarations(t *testing.T, name, old, new string) linttest.Tree {
	t.Helper()
	files := linttest.Tree{
		moduleFile: `
module(name = "here")
bazel_dep(name = "rules", version = "1", repo_name = "the_rules")
fetch = use_extension("//tools:extensions.bzl", "fetch")
fetch.archive(name = "a", version = "1")
fetch.archive(name = "b", version = "2", patches = ["c"])
use_repo(fetch, "a", "b")
other = use_extension("@elsewhere//:extensions.bzl", "other")
other.anything(x = "y")
use_repo(other, "z")
`,
		workspaceFile: `
workspace(name = "here")
load("//tools:fetch.bzl", "archive")
local_repository(name = "local", path = "local")
archive(name = "the_rules", version = "1")
archive(name = "a", version = "1")
archive(name = "b", version = "2", patches = ["c"])
load("@the_rules//:deps.bzl", "dependencies")
dependencies(x = "y")
`,
		"tools/extensions.bzl": `
load(":fetch.bzl", "archive")
_tag = tag_class(attrs = {
    "name": attr.string(mandatory = True),
    "patches": attr.string_list(),
    "version": attr.string(mandatory = True),
})
def _fetch_impl(mctx):
    for module in mctx.modules:
        if not module.is_root:
            continue
        for tag in module.tags.archive:
            archive(name = tag.name, version = tag.version, patches = tag.patches)
    return mctx.extension_metadata(reproducible = True)
fetch = module_extension(implementation = _fetch_impl, tag_classes = {"archive": _tag})
`,
		"tools/fetch.bzl": `
def _archive_impl(rctx):
    pass
archive = repository_rule(implementation = _archive_impl, attrs = {
    "patches": attr.string_list(),
    "version": attr.string(mandatory = True),
})
`,
	}
	if !strings.Contains(files[name], old) {
		t.Fatalf("%s has no %q", name, old)
	}
	files[name] = strings.Replace(files[name], old, new, 1)
	return files
}

func TestDeclarations(t *testing.T) {
	const extensions = "tools/extensions.bzl"
	linttest.Finds(t, Declarations, declarations(t, moduleFile, "", ""))
	linttest.Finds(t, Declarations, declarations(t, moduleFile, `version = "2"`, `version = "3"`), `the repository b has the version "3" here and "2" in WORKSPACE`)
	linttest.Finds(t, Declarations, declarations(t, extensions, ", patches = tag.patches", ""), `the repository b has the patches [] here and ["c"] in WORKSPACE`)
	linttest.Finds(t, Declarations, declarations(t, moduleFile, `"a", "b")`, `"a")`), `declare ["a" "b"], and use_repo names ["a"]`)
	linttest.Finds(t, Declarations, declarations(t, workspaceFile, `archive(name = "a", version = "1")`, ""), "a is declared here and not in WORKSPACE")
	linttest.Finds(t, Declarations, declarations(t, workspaceFile, `archive(name = "a"`, "archive(name = \"d\", version = \"1\")\narchive(name = \"a\""),
		"d is declared in WORKSPACE and not here")
	linttest.Finds(t, Declarations, declarations(t, moduleFile, `, repo_name = "the_rules"`, ""), "the_rules is declared in WORKSPACE and not here")

	linttest.Refuses(t, Declarations, declarations(t, moduleFile, `version = "1")
fetch`, `verson = "1")
fetch`), "the tag archive has no attribute verson")
	linttest.Refuses(t, Declarations, declarations(t, moduleFile, `, version = "1")
fetch`, `)
fetch`), "the tag archive needs the attribute version")
	linttest.Refuses(t, Declarations, declarations(t, moduleFile, "fetch.archive", "fetch.archives"), "it has no tag archives")
	linttest.Refuses(t, Declarations, declarations(t, moduleFile, `bzl", "fetch"`, `bzl", "fetsh"`), "there is no such extension")
	linttest.Refuses(t, Declarations, declarations(t, extensions, "tag.version", "tag.verson"), "no .verson")
	linttest.Refuses(t, Declarations, declarations(t, extensions, "patches = tag.patches", "patch = tag.patches"), "archive has no attribute patch")
	linttest.Refuses(t, Declarations, declarations(t, "tools/fetch.bzl", "attr.string(mandatory", "attr.strings(mandatory"), "no .strings")
	linttest.Refuses(t, Declarations, declarations(t, workspaceFile, `"//tools:fetch.bzl"`, `"//tools:fetsh.bzl"`), "tools/fetsh.bzl")
}
