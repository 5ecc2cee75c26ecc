"""Builds the gazelle command from its Go module, with the pinned Go SDK."""

load(":fetch.bzl", "fetch_module", "go_environment")

def _gazelle_command_impl(rctx):
    go = rctx.path(rctx.attr._go)
    fetch_module(rctx, go, "github.com/bazelbuild/bazel-gazelle", rctx.attr.version, rctx.attr.sum)

    # gazelle's own go.sum, which the hash above covers, pins what it is built from.
    result = rctx.execute(
        [go, "build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-o", "gazelle", "./cmd/gazelle"],
        environment = go_environment(rctx),
        timeout = 900,
    )
    if result.return_code:
        fail("cannot build gazelle: " + result.stderr)

    # Only the command is wanted: the rest would be packages nobody asked for.
    result = rctx.execute(["sh", "-c", "find . -mindepth 1 -maxdepth 1 ! -name gazelle -exec rm -rf {} +"])
    if result.return_code:
        fail("cannot remove gazelle's sources: " + result.stderr)
    rctx.file("WORKSPACE", executable = False)
    rctx.file(
        "BUILD.bazel",
        "exports_files([\"gazelle\"], visibility = [\"//visibility:public\"])\n",
        executable = False,
    )

gazelle_command = repository_rule(
    implementation = _gazelle_command_impl,
    doc = "The gazelle command, as the file //:gazelle.",
    attrs = {
        "sum": attr.string(mandatory = True, doc = "The module's hash as in go.sum."),
        "version": attr.string(mandatory = True, doc = "gazelle's version."),
        "_go": attr.label(default = "@go_distribution//:bin/go"),
    },
)
