"""Go modules as Bazel repositories, read from go.mod and go.sum.

go_module_list reads both files and writes a macro that declares one go_module
for each module which go.mod requires and whose hash go.sum has. Nothing is
written twice: `go get` is all it takes to add a module.
"""

load(":fetch.bzl", "fetch_module")

def repository_name(importpath):
    """Returns gazelle's repository name for a module path.

    Args:
      importpath: a module path such as "golang.org/x/sys".
    Returns:
      a name such as "org_golang_x_sys".
    """
    parts = importpath.lower().split("/")
    host = reversed(parts[0].split("."))
    name = "_".join(host + parts[1:])
    return "".join([c if c.isalnum() else "_" for c in name.elems()])

def _lines(text):
    return [line.split("//")[0].strip() for line in text.splitlines()]

def _required(go_mod):
    """Returns the required modules of a go.mod file: path to version."""
    required = {}
    block = ""
    for line in _lines(go_mod):
        words = line.split(" ")
        if line == ")":
            block = ""
            continue
        if not block and words[-1] == "(":
            block = words[0]
            continue
        directive = block
        if not block:
            directive, words = words[0], words[1:]
        if directive == "replace" and words != [""]:
            fail("go.mod: replace has no counterpart in the Bazel build; require the module itself")
        if directive == "require":
            required[words[0]] = words[1]
    return required

def _sums(go_sum):
    """Returns the hashes of a go.sum file: (path, version) to hash."""
    sums = {}
    for line in go_sum.splitlines():
        words = line.split(" ")
        if len(words) == 3 and not words[1].endswith("/go.mod"):
            sums[(words[0], words[1])] = words[2]
    return sums

def _go_module_list_impl(rctx):
    sums = _sums(rctx.read(rctx.attr.go_sum))
    modules = []
    for path, version in _required(rctx.read(rctx.attr.go_mod)).items():
        # go.sum has no hash for a module of which no package is used.
        if (path, version) in sums:
            modules.append((repository_name(path), path, version, sums[(path, version)]))

    rctx.file("BUILD.bazel", "exports_files([\"repositories.bzl\"])\n", executable = False)
    rctx.file("repositories.bzl", "\n".join([
        "load(\"@powercloud//tools/bazel:go_modules.bzl\", \"go_module\")",
        "",
        "def go_modules():",
    ] + [
        "    go_module(name = %r, importpath = %r, version = %r, sum = %r)" % module
        for module in sorted(modules)
    ] + ["    pass", ""]), executable = False)

    # gazelle learns from this file which repository an import belongs to.
    rctx.file("gazelle/WORKSPACE", "".join([
        "go_repository(name = %r, importpath = %r)\n" % (name, path)
        for name, path, _, _ in sorted(modules)
    ]), executable = False)
    rctx.file("gazelle/BUILD.bazel", "exports_files([\"WORKSPACE\"], visibility = [\"//visibility:public\"])\n", executable = False)

go_module_list = repository_rule(
    implementation = _go_module_list_impl,
    doc = "Declares the modules of go.mod and go.sum: //:repositories.bzl has the macro go_modules().",
    attrs = {
        "go_mod": attr.label(mandatory = True, allow_single_file = True),
        "go_sum": attr.label(mandatory = True, allow_single_file = True),
    },
)

def _go_module_impl(rctx):
    go = rctx.path(rctx.attr._go)
    gazelle = rctx.path(rctx.attr._gazelle)
    config = rctx.path(rctx.attr._config)
    fetch_module(rctx, go, rctx.attr.importpath, rctx.attr.version, rctx.attr.sum)

    # A module's own BUILD files name repositories that only its authors have.
    clean = rctx.execute(["find", ".", "(", "-name", "BUILD", "-o", "-name", "BUILD.bazel", "-o", "-name", "WORKSPACE*", "-o", "-name", "MODULE.bazel", ")", "-type", "f", "-delete"])
    if clean.return_code:
        fail("cannot remove the BUILD files of %s: %s" % (rctx.attr.importpath, clean.stderr))
    rctx.file("WORKSPACE", executable = False)

    rctx.report_progress("writing BUILD files for " + rctx.attr.importpath)
    result = rctx.execute([
        gazelle,
        "update",
        "-go_repository_mode",
        "-go_repository_module_mode",
        "-go_prefix",
        rctx.attr.importpath,
        "-go_naming_convention",
        "import_alias",
        "-go_naming_convention_external",
        "import",
        "-proto",
        "disable_global",
        "-repo_config",
        config,
        "-repo_root",
        rctx.path(""),
        rctx.path(""),
    ], environment = {"GOPROXY": "off", "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod"}, timeout = 600)
    if result.return_code:
        fail("cannot write BUILD files for the Go module %s: %s" % (rctx.attr.importpath, result.stderr))

go_module = repository_rule(
    implementation = _go_module_impl,
    doc = "A Go module with BUILD files written by gazelle.",
    attrs = {
        "importpath": attr.string(mandatory = True, doc = "The module's path."),
        "sum": attr.string(mandatory = True, doc = "The module's hash as in go.sum."),
        "version": attr.string(mandatory = True, doc = "The module's version."),
        "_config": attr.label(default = "@go_modules//gazelle:WORKSPACE"),
        "_gazelle": attr.label(default = "@gazelle_command//:gazelle"),
        "_go": attr.label(default = "@go_distribution//:bin/go"),
    },
)
