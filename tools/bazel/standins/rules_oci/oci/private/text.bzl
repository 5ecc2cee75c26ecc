"""Small files that the macros need."""

def _text_file_impl(ctx):
    ctx.actions.write(ctx.outputs.out, "".join([line + "\n" for line in ctx.attr.lines]))

text_file = rule(
    implementation = _text_file_impl,
    doc = "A file with these lines.",
    attrs = {
        "lines": attr.string_list(doc = "The lines."),
        "out": attr.output(mandatory = True, doc = "The file."),
    },
)

def _digest_file_impl(ctx):
    arguments = ctx.actions.args()
    arguments.add("digest")
    arguments.add("-output", ctx.outputs.out)
    arguments.add("-image", ctx.file.image.path)
    ctx.actions.run(
        executable = ctx.executable._oci,
        inputs = [ctx.file.image],
        outputs = [ctx.outputs.out],
        arguments = [arguments],
        mnemonic = "OCIDigest",
    )

digest_file = rule(
    implementation = _digest_file_impl,
    doc = "A file with the hash by which an image is named.",
    attrs = {
        "image": attr.label(allow_single_file = True, mandatory = True, doc = "The image."),
        "out": attr.output(mandatory = True, doc = "The file."),
        "_oci": attr.label(default = "@powercloud//tools/oci", executable = True, cfg = "exec"),
    },
)
