"""The root filesystem: an initramfs made of what a declaration lists.

A declaration is a list of what directory, program, file, joined, link and
device return. The rule rootfs hands it to //tools/image as it is.
"""

_ARCHITECTURES = {
    "amd64": str(Label("@io_bazel_rules_go//go/toolchain:linux_amd64")),
    "arm64": str(Label("@io_bazel_rules_go//go/toolchain:linux_arm64")),
}

def _entry(path, kind, mode, uid, gid, labels = [], suffix = "", **fields):
    return struct(
        fields = dict(path = path, kind = kind, mode = mode, uid = uid, gid = gid, **fields),
        labels = labels,
        suffix = suffix,
    )

def directory(path, mode = "0755", uid = 0, gid = 0):
    """A directory.

    Args:
      path: where it is, absolute.
      mode: its permissions, octal.
      uid: its owner's number.
      gid: its group's number.
    Returns:
      an entry.
    """
    return _entry(path, "directory", mode, uid, gid)

def program(path, label, mode = "0755", uid = 0, gid = 0):
    """A program, built for the root filesystem's architecture.

    Args:
      path: where it is, absolute.
      label: what it is built from, such as a go_binary; one file.
      mode: its permissions, octal.
      uid: its owner's number.
      gid: its group's number.
    Returns:
      an entry.
    """
    return _entry(path, "file", mode, uid, gid, labels = [label])

def file(path, label, mode = "0644", uid = 0, gid = 0):
    """A file.

    Args:
      path: where it is, absolute.
      label: its content, one file.
      mode: its permissions, octal.
      uid: its owner's number.
      gid: its group's number.
    Returns:
      an entry.
    """
    return _entry(path, "file", mode, uid, gid, labels = [label])

def joined(path, label, suffix, mode = "0644", uid = 0, gid = 0):
    """A file made of several, one after the other in the order of their names.

    Args:
      path: where it is, absolute.
      label: a target of any number of files.
      suffix: how the names of those end that are taken.
      mode: its permissions, octal.
      uid: its owner's number.
      gid: its group's number.
    Returns:
      an entry.
    """
    return _entry(path, "file", mode, uid, gid, labels = [label], suffix = suffix)

def link(path, target, uid = 0, gid = 0):
    """A symbolic link.

    Args:
      path: where it is, absolute.
      target: where it leads.
      uid: its owner's number.
      gid: its group's number.
    Returns:
      an entry.
    """
    return _entry(path, "link", "0777", uid, gid, target = target)

def device(path, kind, major, minor, mode = "0600", uid = 0, gid = 0):
    """A device node.

    Args:
      path: where it is, absolute.
      kind: "character" or "block".
      major: its major number.
      minor: its minor number.
      mode: its permissions, octal.
      uid: its owner's number.
      gid: its group's number.
    Returns:
      an entry.
    """
    return _entry(path, kind + " device", mode, uid, gid, major = major, minor = minor)

def _architecture_impl(_settings, attr):
    return {"//command_line_option:platforms": _ARCHITECTURES[attr.architecture]}

_architecture = transition(
    implementation = _architecture_impl,
    inputs = [],
    outputs = ["//command_line_option:platforms"],
)

def _path(file):
    return file.short_path

def _sources(target, suffix):
    """Returns the files of a target that an entry is made of."""
    files = target.files.to_list()
    if not suffix:
        if len(files) != 1:
            fail("%s has %d files, where an entry takes one" % (target.label, len(files)))
        return files
    files = [f for f in files if f.basename.endswith(suffix)]
    if not files:
        fail("%s has no files that end with %s" % (target.label, suffix))
    return sorted(files, key = _path)

def _rootfs_impl(ctx):
    entries, inputs = [], []
    for entry in json.decode(ctx.attr.entries):
        fields = dict(entry["fields"])
        sources = []
        for index in entry["sources"]:
            sources += _sources(ctx.attr.sources[int(index)], entry["suffix"])
        if sources:
            fields["sources"] = [f.path for f in sources]
        inputs += sources
        entries.append(fields)
    declaration = ctx.actions.declare_file(ctx.label.name + ".json")
    ctx.actions.write(declaration, json.encode({"entries": entries}))
    output = ctx.actions.declare_file(ctx.label.name + ".cpio.zst")
    ctx.actions.run(
        executable = ctx.executable._image,
        inputs = inputs + [declaration],
        outputs = [output],
        arguments = ["initramfs", "-list", declaration.path, "-output", output.path],
        mnemonic = "Initramfs",
    )
    return [DefaultInfo(files = depset([output]))]

_rootfs = rule(
    implementation = _rootfs_impl,
    attrs = {
        "architecture": attr.string(mandatory = True, values = _ARCHITECTURES.keys()),
        "entries": attr.string(mandatory = True),
        "sources": attr.label_list(allow_files = True),
        "_allowlist_function_transition": attr.label(default = "@bazel_tools//tools/allowlists/function_transition_allowlist"),
        "_image": attr.label(default = "//tools/image", executable = True, cfg = "exec"),
    },
    cfg = _architecture,
)

def rootfs(name, architecture, declaration, **kwargs):
    """An initramfs, NAME.cpio.zst, whose bytes follow from its files alone.

    Args:
      name: the target's name.
      architecture: the machine's, "amd64" or "arm64". What the declaration
        names is built for it.
      declaration: what is in it.
      **kwargs: attributes that every rule has.
    """
    sources, entries = {}, []
    for entry in declaration:
        for label in entry.labels:
            sources.setdefault(label, len(sources))
        entries.append(dict(
            fields = entry.fields,
            sources = [sources[label] for label in entry.labels],
            suffix = entry.suffix,
        ))
    _rootfs(
        name = name,
        architecture = architecture,
        entries = json.encode(entries),
        sources = sources.keys(),
        **kwargs
    )
