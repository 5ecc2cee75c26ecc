"""The file system that state volumes begin with."""

# Where the packages' files are, below the folder of an external repository.
_PACKAGES = "/packages/"

_MKE2FS = "/e2fsprogs/sbin/mke2fs"

def _state_file_system_impl(ctx):
    output = ctx.actions.declare_file(ctx.label.name + ".ext4.zst")
    programs = [f.path for f in ctx.files._e2fsprogs if f.path.endswith(_PACKAGES[:-1] + _MKE2FS)]
    if len(programs) != 1:
        fail("the Debian packages have %d programs mke2fs" % len(programs))
    arguments = ctx.actions.args()
    arguments.add("ext4")
    arguments.add("-packages", programs[0].rpartition(_PACKAGES)[0] + _PACKAGES)
    if ctx.attr.mebibytes:
        arguments.add("-mebibytes", str(ctx.attr.mebibytes))
    arguments.add("-output", output)
    ctx.actions.run(
        executable = ctx.executable._image,
        inputs = ctx.files._e2fsprogs,
        outputs = [output],
        arguments = [arguments],
        mnemonic = "StateFileSystem",
    )
    return [DefaultInfo(files = depset([output]), runfiles = ctx.runfiles(files = [output]))]

state_file_system = rule(
    implementation = _state_file_system_impl,
    doc = """The template of a state volume's file system, NAME.ext4.zst.

The Go package go/node/volume writes it to a volume that it formats.""",
    attrs = {
        "mebibytes": attr.int(doc = "Its size, if it isn't that of nodes."),
        "_e2fsprogs": attr.label(default = "@debian_e2fsprogs//:files", cfg = "exec"),
        "_image": attr.label(default = "//tools/image", executable = True, cfg = "exec"),
    },
)
