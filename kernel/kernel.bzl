"""Linux kernels, built from source in a root of Debian packages."""

def _common(ctx, first):
    """Merges a kernel's settings, for the program that goes on from there.

    Args:
      ctx: the rule's context.
      first: one of the program's outputs.
    Returns:
      the program's arguments and its inputs.
    """
    sources = [file for file in ctx.files.source if file.basename.startswith("linux-source-") and file.basename.endswith(".tar.xz")]
    if len(sources) != 1:
        fail("%s has %d archives of a kernel's source instead of one" % (ctx.attr.source.label, len(sources)))

    # A step of its own, so that a kernel isn't built again for a comment.
    settings = ctx.actions.declare_file(ctx.label.name + ".settings")
    merge = ctx.actions.args()
    if ctx.files.command_line:
        merge.add("-architecture", ctx.attr.architecture)
        merge.add_joined("-command-line", ctx.files.command_line, join_with = ",")
    merge.add("-output", settings)
    merge.add_all(ctx.files.fragments)
    ctx.actions.run(
        executable = ctx.executable._merge,
        inputs = ctx.files.fragments + ctx.files.command_line,
        outputs = [settings],
        arguments = [merge],
        mnemonic = "KernelSettings",
    )
    arguments = ctx.actions.args()
    arguments.add("-architecture", ctx.attr.architecture)
    arguments.add("-root", ctx.file.root)
    arguments.add("-source", sources[0])
    arguments.add("-settings", settings)
    arguments.add("-scratch", first.path + ".scratch")
    arguments.add("-config", ctx.outputs.config)
    return arguments, sources + [ctx.file.root, settings]

def _linux_kernel_impl(ctx):
    arguments, inputs = _common(ctx, ctx.outputs.image)
    arguments.add("-image", ctx.outputs.image)
    arguments.add("-map", ctx.outputs.symbols)
    ctx.actions.run(
        executable = ctx.executable._kernel,
        inputs = inputs,
        outputs = [ctx.outputs.image, ctx.outputs.config, ctx.outputs.symbols],
        arguments = [arguments],
        mnemonic = "LinuxKernel",
        progress_message = "Building the kernel %s (takes minutes)" % ctx.label,
    )
    return [DefaultInfo(files = depset([ctx.outputs.image]))]

_ATTRIBUTES = {
    "architecture": attr.string(mandatory = True, values = ["amd64", "arm64"]),
    "command_line": attr.label_list(allow_files = [".txt"]),
    "config": attr.output(mandatory = True),
    "fragments": attr.label_list(mandatory = True, allow_files = [".config"]),
    "root": attr.label(mandatory = True, allow_single_file = [".tar.zst"]),
    "source": attr.label(mandatory = True, allow_files = True),
    "_kernel": attr.label(default = "//tools/kernel", executable = True, cfg = "exec"),
    "_merge": attr.label(default = "//tools/kernel/merge", executable = True, cfg = "exec"),
}

_linux_kernel = rule(
    implementation = _linux_kernel_impl,
    attrs = dict(
        _ATTRIBUTES,
        image = attr.output(mandatory = True),
        symbols = attr.output(mandatory = True),
    ),
)

def _linux_configuration_impl(ctx):
    arguments, inputs = _common(ctx, ctx.outputs.config)
    arguments.add("-configure-only")
    ctx.actions.run(
        executable = ctx.executable._kernel,
        inputs = inputs,
        outputs = [ctx.outputs.config],
        arguments = [arguments],
        mnemonic = "LinuxConfiguration",
        progress_message = "Configuring the kernel %s" % ctx.label,
    )
    return [DefaultInfo(files = depset([ctx.outputs.config]))]

_linux_configuration = rule(
    implementation = _linux_configuration_impl,
    attrs = _ATTRIBUTES,
)

def linux_kernel(name, architecture, fragments, root, source, command_line = [], **kwargs):
    """Declares a kernel that is an EFI program: bzImage on amd64, Image on arm64.

    The build fails when a setting of a fragment did not take effect. NAME is the
    kernel alone.

    Outputs:
      NAME.vmlinuz: the kernel.
      NAME.kconfig: its whole configuration, as Linux writes it to .config.
      NAME.map: its symbols, Linux's System.map.

    Args:
      name: the target's name.
      architecture: amd64 or arm64.
      fragments: files of configuration, none of which sets what another does.
      root: the root with compiler and tools, a debian_root.
      source: what holds linux-source-VERSION.tar.xz, and no other such archive.
      command_line: files whose words are built in, so that the kernel heeds no
        other command line; none for a kernel that takes what it is started with.
      **kwargs: attributes that every rule has.
    """
    _linux_kernel(
        name = name,
        architecture = architecture,
        command_line = command_line,
        config = name + ".kconfig",
        fragments = fragments,
        image = name + ".vmlinuz",
        root = root,
        source = source,
        symbols = name + ".map",
        **kwargs
    )

def linux_configuration(name, architecture, fragments, root, source, **kwargs):
    """Declares the whole configuration of a kernel, NAME.kconfig, without the kernel.

    The build fails when a setting of a fragment did not take effect.

    Args:
      name: the target's name.
      architecture: as in linux_kernel.
      fragments: as in linux_kernel.
      root: as in linux_kernel.
      source: as in linux_kernel.
      **kwargs: attributes that every rule has.
    """
    _linux_configuration(
        name = name,
        architecture = architecture,
        config = name + ".kconfig",
        fragments = fragments,
        root = root,
        source = source,
        **kwargs
    )
