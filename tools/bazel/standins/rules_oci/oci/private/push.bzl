"""Pushing images to a registry."""

load(":launcher.bzl", "launcher")

def _oci_push_impl(ctx):
    if ctx.attr.repository and ctx.attr.repository_file:
        fail("repository and repository_file can't be given both")
    flags = {"image": ctx.file.image}
    if ctx.attr.repository:
        flags["repository"] = ctx.attr.repository
    if ctx.file.repository_file:
        flags["repository-file"] = ctx.file.repository_file
    if ctx.file.remote_tags:
        flags["tags"] = ctx.file.remote_tags
    return [launcher(ctx, "push", flags)]

oci_push = rule(
    implementation = _oci_push_impl,
    doc = "Pushes an image or an index with bazel run, which takes -r REPOSITORY and -t TAG.",
    executable = True,
    attrs = {
        "image": attr.label(allow_single_file = True, mandatory = True, doc = "The image or index."),
        "remote_tags": attr.label(allow_single_file = True, doc = "A file with tags, one a line."),
        "repository": attr.string(doc = "The repository with its registry, without a tag."),
        "repository_file": attr.label(allow_single_file = True, doc = "A file with the repository."),
        "_oci": attr.label(default = "@powercloud//tools/oci", executable = True, cfg = "exec"),
    },
)
