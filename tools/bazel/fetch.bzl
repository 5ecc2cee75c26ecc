"""Fetches Go modules with the go command, checked against pinned hashes.

Nothing here names a host: the module comes from wherever `go env GOPROXY` says,
and the pinned hash decides whether it is the right one.
"""

# Prints the "h1:" hash of the module whose files lie in $1 and whose name is
# $2 ("path@version"), as golang.org/x/mod/sumdb/dirhash defines it. The hash is
# taken of the very files that are used, so that an altered module cache is
# noticed as well as an altered download.
_DIRHASH = """set -euo pipefail
cd "$1"
hex=$(find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum |
  sed "s|  \\./|  $2/|" | sha256sum | cut -d ' ' -f 1)
printf 'h1:%s' "$(printf "$(sed 's/../\\\\x&/g' <<<"$hex")" | base64)"
"""

def go_environment(rctx):
    """Returns the environment in which a repository rule runs the go command.

    The user's own GOPROXY, GOMODCACHE and GOCACHE stay in force. What would
    change the result (flags, workspaces, a switch of toolchains) doesn't.

    Args:
      rctx: the repository rule's context.
    Returns:
      a dict for rctx.execute.
    """
    env = {
        "CGO_ENABLED": "0",
        "GO111MODULE": "on",
        "GOFLAGS": "",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }

    # Without a home directory the go command has no place for its caches.
    if not rctx.os.environ.get("HOME"):
        scratch = str(rctx.path("."))
        if not rctx.os.environ.get("GOPATH"):
            env["GOPATH"] = scratch + "/.gopath"
        if not rctx.os.environ.get("GOCACHE"):
            env["GOCACHE"] = scratch + "/.gocache"
    return env

def fetch_module(rctx, go, path, version, sum):
    """Copies a Go module's files into the repository.

    Args:
      rctx: the repository rule's context.
      go: the go command to fetch with, a path.
      path: the module's path.
      version: the module's version.
      sum: the hash that go.sum has for it, "h1:...".
    """
    module = path + "@" + version
    rctx.report_progress("fetching " + module)
    env = go_environment(rctx)
    if path != "golang.org/toolchain":
        # The hash is pinned, so the checksum database has no say. For its own
        # distributions the go command asks it all the same.
        env["GOSUMDB"] = "off"
    result = rctx.execute([go, "mod", "download", "-json", module], environment = env, timeout = 600)
    if result.return_code:
        fail("cannot fetch the Go module %s: %s%s" % (module, result.stdout, result.stderr))
    directory = json.decode(result.stdout)["Dir"]

    result = rctx.execute(["bash", "-c", _DIRHASH, "dirhash", directory, module])
    if result.return_code:
        fail("cannot hash the Go module %s: %s" % (module, result.stderr))
    if result.stdout != sum:
        fail("the Go module %s has the hash %s, but %s is pinned; `go clean -modcache` drops a damaged cache" %
             (module, result.stdout, sum))

    result = rctx.execute(["sh", "-c", "cp -R \"$1\"/. . && chmod -R u+w . && rm -rf .gopath .gocache", "copy", directory])
    if result.return_code:
        fail("cannot copy the Go module %s: %s" % (module, result.stderr))

def first_go(rctx):
    """Returns the go command in PATH, whatever its version: it only fetches.

    Args:
      rctx: the repository rule's context.
    Returns:
      its path.
    """
    go = rctx.which("go")
    if not go:
        fail("no go command in PATH to fetch Go modules with: run tools/setup")
    return go

def _module_archive_impl(rctx):
    fetch_module(rctx, first_go(rctx), rctx.attr.importpath, rctx.attr.version, rctx.attr.sum)
    for patch in rctx.attr.patches:
        rctx.patch(patch, strip = 1)
    if rctx.attr.executables:
        # A module's archive has no executable bits.
        result = rctx.execute(["sh", "-c", "chmod +x " + " ".join(rctx.attr.executables)])
        if result.return_code:
            fail("cannot make %s executable: %s" % (rctx.attr.executables, result.stderr))
    if rctx.attr.build_file_content:
        rctx.file("BUILD.bazel", rctx.attr.build_file_content, executable = False)

module_archive = repository_rule(
    implementation = _module_archive_impl,
    doc = "A Go module's files as they are, fetched by the go command in PATH.",
    attrs = {
        "build_file_content": attr.string(doc = "The root BUILD.bazel; the module's own when empty."),
        "executables": attr.string_list(doc = "Files to make executable; shell patterns."),
        "importpath": attr.string(mandatory = True, doc = "The module's path."),
        "patches": attr.label_list(doc = "Patches, to be applied with -p1."),
        "sum": attr.string(mandatory = True, doc = "The module's hash as in go.sum."),
        "version": attr.string(mandatory = True, doc = "The module's version."),
    },
)
