"""Roots made of Debian packages, in which build steps and tests run."""

def _debian_root_impl(ctx):
    output = ctx.actions.declare_file(ctx.label.name + ".tar.zst")
    arguments = ctx.actions.args()
    arguments.add("-output", output)
    for path, target in sorted(ctx.attr.links.items()):
        arguments.add("-link", path + "=" + target)
    arguments.add_all(ctx.files.packages)
    ctx.actions.run(
        executable = ctx.executable._pack,
        inputs = ctx.files.packages,
        outputs = [output],
        arguments = [arguments],
        mnemonic = "DebianRoot",
        progress_message = "Packing the root %s" % ctx.label,
    )
    return [DefaultInfo(files = depset([output]))]

debian_root = rule(
    implementation = _debian_root_impl,
    doc = """The files of Debian packages in one archive, NAME.tar.zst.

The Go package tools/debian/root unpacks it and runs programs in it. No maintainer
script runs: the links that they would have made are given here.""",
    attrs = {
        "links": attr.string_dict(doc = "Links in the root: a path without a slash at its beginning, and its target."),
        "packages": attr.label_list(mandatory = True, allow_files = [".deb"], doc = "The packages, such as @REPOSITORY//:debs."),
        "_pack": attr.label(default = "//tools/debian/pack", executable = True, cfg = "exec"),
    },
)
