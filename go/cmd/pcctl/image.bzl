"""A container image with a program in it."""

load("@rules_oci//oci:defs.bzl", "oci_image", "oci_image_index", "oci_load", "oci_push")
load("//tools/layer:layer.bzl", "image_layer")

ARCHITECTURES = [
    "amd64",
    "arm64",
]

def program_image(name, program, description, visibility):
    """Declares an index of images of the programs PROGRAM-linux-ARCHITECTURE.

    NAME-ARCHITECTURE is one image, NAME-load loads that for amd64 into docker or
    podman, and NAME-push pushes the index.

    Args:
      name: the index's name.
      program: the program's name.
      description: what the program does, in one line.
      visibility: who may use them.
    """
    for architecture in ARCHITECTURES:
        image = "-".join([name, architecture])
        image_layer(
            name = image + "-layer",
            executables = {":%s-linux-%s" % (program, architecture): "/" + program},
        )
        oci_image(
            name = image,
            annotations = {
                "org.opencontainers.image.description": description,
                "org.opencontainers.image.title": program,
            },
            architecture = architecture,
            entrypoint = ["/" + program],
            labels = {
                "org.opencontainers.image.description": description,
                "org.opencontainers.image.title": program,
            },
            os = "linux",
            tars = [":%s-layer" % image],
            user = "65532:65532",  # nobody in particular, by custom
            visibility = visibility,
            workdir = "/",
        )
    oci_image_index(
        name = name,
        images = [":%s-%s" % (name, architecture) for architecture in ARCHITECTURES],
        visibility = visibility,
    )
    oci_load(
        name = name + "-load",
        image = ":%s-amd64" % name,
        repo_tags = ["powercloud/%s:dev" % program],
        visibility = visibility,
    )
    oci_push(
        name = name + "-push",
        image = ":" + name,
        visibility = visibility,
    )
