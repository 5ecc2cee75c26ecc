"""A program of another Go module, with that module's own dependencies.

What it requires may clash with what go.mod at the root of the tree requires, so
its modules can't be repositories beside the others. go_program vendors them
instead: one repository holds the sources of everything that the program is made
of, and Bazel compiles them like any other Go code.
"""

load(":fetch.bzl", "go_environment")

def _go_program_impl(rctx):
    go = rctx.path(rctx.attr._go)
    gazelle = rctx.path(rctx.attr._gazelle)
    rctx.file("go.mod", rctx.read(rctx.attr.go_mod), executable = False)
    rctx.file("go.sum", rctx.read(rctx.attr.go_sum), executable = False)

    # go.sum has the hash of every module, so the checksum database has no say.
    env = go_environment(rctx)
    env["GOSUMDB"] = "off"
    env["GOFLAGS"] = "-mod=readonly"
    for command, doing in [
        ("download", "fetching"),
        ("verify", "checking"),
        ("vendor", "copying"),
    ]:
        rctx.report_progress("%s the modules of %s" % (doing, rctx.attr.package))
        result = rctx.execute([go, "mod", command], environment = env, timeout = 1200)
        if result.return_code:
            fail("%s the modules of %s: %s%s" % (doing, rctx.attr.package, result.stdout, result.stderr))

    # A module's own BUILD files name repositories that only its authors have.
    result = rctx.execute(["find", "vendor", "(", "-name", "BUILD", "-o", "-name", "BUILD.bazel", "-o", "-name", "WORKSPACE*", "-o", "-name", "MODULE.bazel", ")", "-type", "f", "-delete"])
    if result.return_code:
        fail("removing the BUILD files of %s: %s" % (rctx.attr.package, result.stderr))
    rctx.file("WORKSPACE", executable = False)

    rctx.report_progress("writing BUILD files for " + rctx.attr.package)
    result = rctx.execute([
        gazelle,
        "update",
        "-external",
        "static",
        "-go_prefix",
        "vendored/" + rctx.name,
        "-go_naming_convention",
        "import",
        "-proto",
        "disable_global",
        "-repo_root",
        rctx.path(""),
        rctx.path(""),
    ], environment = {"GOPROXY": "off", "GOTOOLCHAIN": "local"}, timeout = 600)
    if result.return_code:
        fail("writing BUILD files for %s: %s" % (rctx.attr.package, result.stderr))
    rctx.file("program/BUILD.bazel", """alias(
    name = "program",
    actual = "//vendor/%s",
    visibility = ["//visibility:public"],
)
""" % rctx.attr.package, executable = False)

go_program = repository_rule(
    implementation = _go_program_impl,
    doc = "A Go program as //program, built from the modules that a go.mod and a go.sum of its own lock.",
    attrs = {
        "go_mod": attr.label(mandatory = True, allow_single_file = True, doc = "It names the program as a tool."),
        "go_sum": attr.label(mandatory = True, allow_single_file = True),
        "package": attr.string(mandatory = True, doc = "The program's import path."),
        "_gazelle": attr.label(default = "@gazelle_command//:gazelle"),
        "_go": attr.label(default = "@go_distribution//:bin/go"),
    },
)
