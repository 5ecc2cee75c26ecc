"""Layers of container images, as oci_image takes them."""

def _image_layer_impl(ctx):
    output = ctx.actions.declare_file(ctx.label.name + ".tar.gz")
    arguments = ctx.actions.args()
    arguments.add("-output", output)
    for flag, files in [("-file", ctx.attr.files), ("-executable", ctx.attr.executables)]:
        for target, path in files.items():
            found = target.files.to_list()
            if len(found) != 1:
                fail("%s has %d files, where a layer takes one" % (target.label, len(found)))
            arguments.add_all([found[0]], before_each = flag, format_each = path.lstrip("/") + "=%s")
    ctx.actions.run(
        executable = ctx.executable._layer,
        inputs = ctx.files.files + ctx.files.executables,
        outputs = [output],
        arguments = [arguments],
        mnemonic = "ImageLayer",
    )
    return [DefaultInfo(files = depset([output]))]

image_layer = rule(
    implementation = _image_layer_impl,
    doc = "A layer with these files, NAME.tar.gz, whose bytes follow from the files alone.",
    attrs = {
        "executables": attr.label_keyed_string_dict(allow_files = True, doc = "Programs, each with its path in the image."),
        "files": attr.label_keyed_string_dict(allow_files = True, doc = "Other files, each with its path in the image."),
        "_layer": attr.label(default = "//tools/layer", executable = True, cfg = "exec"),
    },
)
