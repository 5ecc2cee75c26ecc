"""Loading images into a container engine."""

load(":launcher.bzl", "launcher")

def _oci_load_impl(ctx):
    tarball = ctx.actions.declare_file(ctx.label.name + "/tarball.tar")
    arguments = ctx.actions.args()
    arguments.add("archive")
    arguments.add("-output", tarball)
    arguments.add("-image", ctx.file.image.path)
    arguments.add("-tags", ctx.file.repo_tags)
    arguments.add("-format", ctx.attr.format)
    ctx.actions.run(
        executable = ctx.executable._oci,
        inputs = [ctx.file.image, ctx.file.repo_tags],
        outputs = [tarball],
        arguments = [arguments],
        mnemonic = "OCITarball",
        progress_message = "Packing the image %s" % ctx.label,
    )
    flags = {"format": ctx.attr.format, "image": ctx.file.image, "tags": ctx.file.repo_tags}
    if ctx.executable.loader:
        flags["loader"] = ctx.executable.loader
    return [
        launcher(ctx, "load", flags),
        OutputGroupInfo(tarball = depset([tarball])),
    ]

oci_load = rule(
    implementation = _oci_load_impl,
    doc = "Loads an image into docker or podman with bazel run. The output group tarball has the file that is loaded.",
    executable = True,
    attrs = {
        "format": attr.string(default = "docker", values = ["docker", "oci"], doc = "What is loaded; an index needs oci."),
        "image": attr.label(allow_single_file = True, mandatory = True, doc = "The image."),
        "loader": attr.label(allow_files = True, executable = True, cfg = "target", doc = "The engine, instead of docker or podman."),
        "repo_tags": attr.label(allow_single_file = [".txt"], mandatory = True, doc = "A file with names and tags, one a line."),
        "_oci": attr.label(default = "@powercloud//tools/oci", executable = True, cfg = "exec"),
    },
)
