"""EFI files, disk images and releases."""

def _optional_status(ctx):
    """Returns the arguments and inputs by which a step learns the version."""
    if not ctx.attr.stamp:
        return [], []
    return ["-status", ctx.info_file.path], [ctx.info_file]

def _efi_file_impl(ctx):
    output = ctx.actions.declare_file(ctx.attr.out)
    status, inputs = _optional_status(ctx)
    inputs = inputs + [ctx.file.kernel, ctx.file.initramfs, ctx.file.stub] + ctx.files.command_line
    arguments = ctx.actions.args()
    arguments.add_all(["efi", "-architecture", ctx.attr.architecture])
    arguments.add_joined("-command-line", ctx.files.command_line, join_with = ",")
    arguments.add_all(["-stub", ctx.file.stub, "-kernel", ctx.file.kernel, "-initramfs", ctx.file.initramfs, "-output", output])
    arguments.add_all(status)
    for flag, files in [("-key", ctx.files.key), ("-certificate", ctx.files.certificate)]:
        if len(files) > 1:
            fail("the Secure Boot %s must be one file, not %d" % (flag[1:], len(files)))
        arguments.add_all(files, before_each = flag)
        inputs += files
    if len(ctx.files.key) != len(ctx.files.certificate):
        fail("signing needs both --//disk:sb_key and --//disk:sb_cert")
    ctx.actions.run(
        executable = ctx.executable._image,
        inputs = inputs,
        outputs = [output],
        arguments = [arguments],
        mnemonic = "EFIFile",
        # A key is for this machine alone.
        execution_requirements = {"no-remote": "1"} if ctx.files.key else {},
    )
    return [DefaultInfo(files = depset([output]))]

_efi_file = rule(
    implementation = _efi_file_impl,
    attrs = {
        "architecture": attr.string(mandatory = True, values = ["amd64", "arm64"]),
        "certificate": attr.label(allow_files = True),
        "command_line": attr.label_list(allow_files = True, mandatory = True),
        "initramfs": attr.label(allow_single_file = True, mandatory = True),
        "kernel": attr.label(allow_single_file = True, mandatory = True),
        "key": attr.label(allow_files = True),
        "out": attr.string(mandatory = True),
        "stamp": attr.bool(mandatory = True),
        "stub": attr.label(allow_single_file = True, mandatory = True),
        "_image": attr.label(default = "//tools/image", executable = True, cfg = "exec"),
    },
)

def _disk_image_impl(ctx):
    output = ctx.actions.declare_file(ctx.attr.out)
    ctx.actions.run(
        executable = ctx.executable._image,
        inputs = [ctx.file.system],
        outputs = [output],
        arguments = ["disk", "-architecture", ctx.attr.architecture, "-system", ctx.file.system.path, "-output", output.path],
        mnemonic = "DiskImage",
        # It is made in less time than a gigabyte is copied to a cache, where it
        # would not be sparse.
        execution_requirements = {"no-cache": "1"},
    )
    return [DefaultInfo(files = depset([output]))]

_disk_image = rule(
    implementation = _disk_image_impl,
    attrs = {
        "architecture": attr.string(mandatory = True, values = ["amd64", "arm64"]),
        "out": attr.string(mandatory = True),
        "system": attr.label(allow_single_file = True, mandatory = True),
        "_image": attr.label(default = "//tools/image", executable = True, cfg = "exec"),
    },
)

# What a disk image packed for a cloud is named after, by the step that packs it.
_CLOUD_ENDINGS = {
    "gce": ".gce.tar.gz",
    "vhd": ".vhd",
}

def _cloud_image_impl(ctx):
    output = ctx.actions.declare_file(ctx.attr.out + _CLOUD_ENDINGS[ctx.attr.step])
    ctx.actions.run(
        executable = ctx.executable._image,
        inputs = [ctx.file.input],
        outputs = [output],
        arguments = [ctx.attr.step, "-input", ctx.file.input.path, "-output", output.path],
        mnemonic = "CloudImage",
        # A VHD is as large as the disk, and as quickly made.
        execution_requirements = {"no-cache": "1"} if ctx.attr.step == "vhd" else {},
    )
    return [DefaultInfo(files = depset([output]))]

_cloud_image = rule(
    implementation = _cloud_image_impl,
    attrs = {
        "input": attr.label(allow_single_file = True, mandatory = True),
        "out": attr.string(mandatory = True),
        "step": attr.string(mandatory = True, values = _CLOUD_ENDINGS.keys()),
        "_image": attr.label(default = "//tools/image", executable = True, cfg = "exec"),
    },
)

# Where the packages' files are, below the folder of an external repository.
_PACKAGES = "/packages/"

def _compressed_impl(ctx):
    output = ctx.actions.declare_file(ctx.file.input.basename + ".xz")
    packages = [f.path for f in ctx.files._xz if f.path.endswith("/xz-utils/usr/bin/xz")]
    if len(packages) != 1:
        fail("the Debian packages have %d programs xz" % len(packages))
    ctx.actions.run(
        executable = ctx.executable._image,
        inputs = [ctx.file.input] + ctx.files._xz,
        outputs = [output],
        arguments = ["compress", "-packages", packages[0].rpartition(_PACKAGES)[0] + _PACKAGES, "-input", ctx.file.input.path, "-output", output.path],
        mnemonic = "Compress",
    )
    return [DefaultInfo(files = depset([output]))]

_compressed = rule(
    implementation = _compressed_impl,
    attrs = {
        "input": attr.label(allow_single_file = True, mandatory = True),
        "_image": attr.label(default = "//tools/image", executable = True, cfg = "exec"),
        "_xz": attr.label(default = "@debian_xz//:files", cfg = "exec"),
    },
)

_STUBS = {
    "amd64": "//disk:linuxx64.efi.stub",
    "arm64": "//disk:linuxaa64.efi.stub",
}

def node_image(name, architecture, kernel, initramfs, key = None, certificate = None, tags = [], visibility = None):
    """A node's system, as an EFI file and on a disk image.

    Targets:
      NAME_efi         NAME-ARCHITECTURE.efi, signed if there is a key
      NAME_disk        NAME-ARCHITECTURE.img
      NAME_compressed  NAME-ARCHITECTURE.img.xz
      NAME_gce         NAME-ARCHITECTURE.gce.tar.gz, for Google Cloud
      NAME_vhd         NAME-ARCHITECTURE.vhd, for Azure
      NAME_vhd_compressed
                       NAME-ARCHITECTURE.vhd.xz
    each with _ARCHITECTURE after it. Those for clouds are built when asked for, or
    for a release that holds them.

    Args:
      name: what the files' names begin with.
      architecture: the machine's, "amd64" or "arm64".
      kernel: a kernel with an EFI stub.
      initramfs: a rootfs for the same architecture.
      key: the private key to sign with, a target of one file or none.
      certificate: the key's certificate, likewise.
      tags: as every rule has them.
      visibility: who may use them.
    """
    out = "%s-%s" % (name, architecture)
    efi, disk = "%s_efi_%s" % (name, architecture), "%s_disk_%s" % (name, architecture)
    _efi_file(
        name = efi,
        architecture = architecture,
        certificate = certificate,
        command_line = [
            "//disk:command_line_%s.txt" % architecture,
            "//disk:command_line.txt",
        ],
        initramfs = initramfs,
        kernel = kernel,
        key = key,
        out = out + ".efi",
        stamp = select({
            "//disk:stamped": True,
            "//conditions:default": False,
        }),
        stub = _STUBS[architecture],
        tags = tags,
        visibility = visibility,
    )
    _disk_image(
        name = disk,
        architecture = architecture,
        out = out + ".img",
        system = ":" + efi,
        tags = tags,
        visibility = visibility,
    )
    _compressed(
        name = "%s_compressed_%s" % (name, architecture),
        input = ":" + disk,
        tags = tags,
        visibility = visibility,
    )
    for step in _CLOUD_ENDINGS:
        _cloud_image(
            name = "%s_%s_%s" % (name, step, architecture),
            input = ":" + disk,
            out = out,
            step = step,
            tags = tags + ["manual"],
            visibility = visibility,
        )
    _compressed(
        name = "%s_vhd_compressed_%s" % (name, architecture),
        input = ":%s_vhd_%s" % (name, architecture),
        tags = tags + ["manual"],
        visibility = visibility,
    )

def _release_impl(ctx):
    output = ctx.actions.declare_directory(ctx.label.name)
    status, inputs = _optional_status(ctx)
    ctx.actions.run(
        executable = ctx.executable._image,
        inputs = inputs + ctx.files.files,
        outputs = [output],
        arguments = ["release", "-output", output.path] + status + [f.path for f in ctx.files.files],
        mnemonic = "ReleaseFiles",
        # Only copies.
        execution_requirements = {"no-cache": "1"},
    )
    return [DefaultInfo(files = depset([output]))]

_release_files = rule(
    implementation = _release_impl,
    attrs = {
        "files": attr.label_list(allow_files = True, mandatory = True),
        "stamp": attr.bool(mandatory = True),
        "_image": attr.label(default = "//tools/image", executable = True, cfg = "exec"),
    },
)

def release_files(name, files, **kwargs):
    """A folder NAME with the files under the names that they have in a release, and SHA256SUMS.

    Args:
      name: the folder's name.
      files: what is in it, each named PRODUCT-REST.
      **kwargs: attributes that every rule has.
    """
    _release_files(
        name = name,
        files = files,
        stamp = select({
            "//disk:stamped": True,
            "//conditions:default": False,
        }),
        **kwargs
    )

def _release_list_impl(ctx):
    output = ctx.actions.declare_file(ctx.label.name + ".txt")
    ctx.actions.write(output, "".join([f.basename + "\n" for f in ctx.files.files]))
    return [DefaultInfo(files = depset([output]))]

release_list = rule(
    implementation = _release_list_impl,
    attrs = {"files": attr.label_list(allow_files = True, mandatory = True)},
    doc = """NAME.txt, the names of what release_files would put together, one a line.

Nothing of that is built, so that a test can look at the list of a whole release.""",
)
