"""One folder with files of several Debian packages, laid out as in a root."""

def _debian_tree_impl(ctx):
    output = ctx.actions.declare_directory(ctx.label.name)
    pairs = []
    sources = []
    for source in ctx.files.packages:
        # A debian_packages repository has each package's files below
        # packages/NAME/.
        _, separator, rest = source.path.partition("/packages/")
        target = rest.partition("/")[2]
        if separator and [True for prefix in ctx.attr.include if target.startswith(prefix)]:
            sources.append(source)
            pairs.append("%s=%s" % (target, source.path))
    if not pairs:
        fail("%s: no file of the packages begins with any of %s" % (ctx.label, ", ".join(ctx.attr.include)))
    arguments = ctx.actions.args()
    arguments.add("-output", output.path)
    files = ctx.actions.args()
    files.add_all(pairs)
    files.set_param_file_format("multiline")
    files.use_param_file("-list=%s", use_always = True)
    ctx.actions.run(
        executable = ctx.executable._tree,
        inputs = sources,
        outputs = [output],
        arguments = [arguments, files],
        mnemonic = "DebianTree",
        # It copies hundreds of megabytes, which no cache would bring faster.
        execution_requirements = {"no-cache": "1"},
    )
    return [DefaultInfo(files = depset([output]), runfiles = ctx.runfiles(files = [output]))]

debian_tree = rule(
    implementation = _debian_tree_impl,
    doc = "A folder with those files of Debian packages whose path in the root begins with one of some prefixes.",
    attrs = {
        "include": attr.string_list(mandatory = True, doc = "Beginnings of paths, such as usr/share/qemu/."),
        "packages": attr.label_list(mandatory = True, allow_files = True, doc = "Targets of debian_packages repositories: one package each, or all files."),
        "_tree": attr.label(default = "//tools/debian/tree", executable = True, cfg = "exec"),
    },
)
