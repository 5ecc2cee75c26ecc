"""The programs of a release, built for every system that they run on."""

load("@io_bazel_rules_go//go:def.bzl", "go_binary")

# Operating system and processor, in Go's terms. Of each system, go vet and staticcheck
# look at one: tools/bazel/rules_go.patch names those that aren't the tests'.
PLATFORMS = [
    ("darwin", "amd64"),
    ("darwin", "arm64"),
    ("linux", "amd64"),
    ("linux", "arm64"),
    ("windows", "amd64"),
]

# What a build with --config=release sets; in any other the program says "dev".
_VERSION = {"powercloud.unidatum.com/go/admin/pcctl.Version": "{STABLE_VERSION}"}

def release_binaries(name, program, embed, visibility):
    """Declares PROGRAM-OS-ARCH for every platform, and a group of all.

    The binaries are static and hold no path of the machine that built them. They
    are built when asked for, not by bazel test //...: each platform has a standard
    library of its own to build.

    Args:
      name: the group's name.
      program: the program's name.
      embed: the library with the main package.
      visibility: who may use them.
    """
    binaries = []
    for os, architecture in PLATFORMS:
        binary = "-".join([program, os, architecture])
        go_binary(
            name = binary,
            out = binary + (".exe" if os == "windows" else ""),
            embed = embed,
            gc_linkopts = [
                "-s",
                "-w",
            ],
            goarch = architecture,
            goos = os,
            pure = "on",
            static = "on",
            tags = ["manual"],
            visibility = visibility,
            x_defs = _VERSION,
        )
        binaries.append(":" + binary)
    native.filegroup(
        name = name,
        srcs = binaries,
        tags = ["manual"],
        visibility = visibility,
    )
