"""The key that images are signed with, by its place in the environment."""

_KEY = "POWERCLOUD_SB_KEY"
_CERTIFICATE = "POWERCLOUD_SB_CERT"

_BUILD = """package(default_visibility = ["//visibility:public"])

filegroup(
    name = "key",
    srcs = glob(["db.key"]),
)

filegroup(
    name = "certificate",
    srcs = glob(["db.crt"]),
)
"""

def _secure_boot_impl(rctx):
    found = {name: rctx.os.environ.get(name, "") for name in [_KEY, _CERTIFICATE]}
    if bool(found[_KEY]) != bool(found[_CERTIFICATE]):
        given, missing = (_KEY, _CERTIFICATE) if found[_KEY] else (_CERTIFICATE, _KEY)
        fail("%s is set and %s is not: set both to sign images, or none" % (given, missing))
    for name, link in [(_KEY, "db.key"), (_CERTIFICATE, "db.crt")]:
        if not found[name]:
            continue
        if not found[name].startswith("/"):
            fail("%s must be a path from / on, not %r" % (name, found[name]))
        if not rctx.path(found[name]).exists:
            fail("%s names no file: %s" % (name, found[name]))

        # Links, not copies: a key stays where its owner keeps it.
        rctx.symlink(found[name], link)
    rctx.file("WORKSPACE", executable = False)
    rctx.file("BUILD.bazel", _BUILD, executable = False)

secure_boot_key = repository_rule(
    implementation = _secure_boot_impl,
    doc = """The files that POWERCLOUD_SB_KEY and POWERCLOUD_SB_CERT name in the environment, as links.

Targets, without any file when the variables aren't set:
  //:key          the private key
  //:certificate  its certificate""",
    environ = [_KEY, _CERTIFICATE],
    local = True,
)
