"""Indices of images for several platforms."""

_PLATFORMS = "//command_line_option:platforms"

def _each_platform_impl(settings, attr):
    if not attr.platforms:
        return {"same": {_PLATFORMS: settings[_PLATFORMS]}}
    return {str(platform): {_PLATFORMS: [platform]} for platform in attr.platforms}

_each_platform = transition(
    implementation = _each_platform_impl,
    inputs = [_PLATFORMS],
    outputs = [_PLATFORMS],
)

def _oci_image_index_impl(ctx):
    if ctx.attr.platforms and len(ctx.attr.images) != len(ctx.attr.platforms):
        fail("with platforms, images must name one image, which is built for each")
    output = ctx.actions.declare_directory(ctx.label.name)
    arguments = ctx.actions.args()
    arguments.add("index")
    arguments.add("-output", output.path)
    for image in ctx.files.images:
        arguments.add(image.path)
    ctx.actions.run(
        executable = ctx.executable._oci,
        inputs = ctx.files.images,
        outputs = [output],
        arguments = [arguments],
        mnemonic = "OCIIndex",
        progress_message = "Building the index %s" % ctx.label,
    )
    return [DefaultInfo(files = depset([output]), runfiles = ctx.runfiles([output]))]

oci_image_index = rule(
    implementation = _oci_image_index_impl,
    doc = "An index of images for several platforms, as a folder like an image.",
    attrs = {
        "images": attr.label_list(allow_files = False, cfg = _each_platform, mandatory = True, doc = "The images."),
        "platforms": attr.label_list(
            doc = "Platforms; images then names one image, which is built for each of them.",
            providers = [platform_common.PlatformInfo],
        ),
        "_allowlist_function_transition": attr.label(default = "@bazel_tools//tools/allowlists/function_transition_allowlist"),
        "_oci": attr.label(default = "@powercloud//tools/oci", executable = True, cfg = "exec"),
    },
)
