"""Images."""

# Attributes that name a file with a part of the configuration.
_FILES = {
    "annotations": "key=value lines, for the manifest.",
    "cmd": "What follows the entrypoint, one argument a line.",
    "created": "A time as in RFC 3339; without it the base's, or else the beginning of 1970.",
    "entrypoint": "The program and its arguments, one a line.",
    "env": "key=value lines; $KEY and ${KEY} in a value are the base's.",
    "exposed_ports": "Ports, such as 2000, 2000/tcp or 2000/udp.",
    "labels": "key=value lines.",
    "volumes": "Absolute paths.",
}

_STRINGS = {
    "architecture": "The processor, in Go's terms, of an image without a base.",
    "os": "The operating system, in Go's terms, of an image without a base.",
    "user": "A user and maybe a group, by name or number.",
    "variant": "The processor's variant, of an image without a base.",
    "workdir": "An absolute path.",
}

def _oci_image_impl(ctx):
    output = ctx.actions.declare_directory(ctx.label.name)
    inputs = list(ctx.files.tars)
    arguments = ctx.actions.args()
    arguments.add("image")
    arguments.add("-output", output.path)
    if ctx.file.base:
        arguments.add("-base", ctx.file.base.path)
        inputs.append(ctx.file.base)
    arguments.add_all(ctx.files.tars, before_each = "-layer")
    for name in _FILES:
        file = getattr(ctx.file, name)
        if file:
            arguments.add("-" + name.replace("_", "-"), file)
            inputs.append(file)
    for name in _STRINGS:
        value = getattr(ctx.attr, name)
        if value:
            arguments.add("-" + name, value)
    ctx.actions.run(
        executable = ctx.executable._oci,
        inputs = inputs,
        outputs = [output],
        arguments = [arguments],
        mnemonic = "OCIImage",
        progress_message = "Building the image %s" % ctx.label,
    )
    return [DefaultInfo(files = depset([output]), runfiles = ctx.runfiles([output]))]

_attrs = {
    "base": attr.label(allow_single_file = True, doc = "The image that this one is built upon."),
    "tars": attr.label_list(
        allow_files = [".tar", ".tar.gz", ".tgz", ".tar.zst", ".tzst"],
        doc = "Its layers, in this order.",
    ),
    "_oci": attr.label(default = "@powercloud//tools/oci", executable = True, cfg = "exec"),
}

_attrs.update({name: attr.label(allow_single_file = True, doc = doc) for name, doc in _FILES.items()})

_attrs.update({name: attr.string(doc = doc) for name, doc in _STRINGS.items()})

oci_image = rule(
    implementation = _oci_image_impl,
    doc = "An image, as a folder in the layout of the Open Container Initiative.",
    attrs = _attrs,
)
