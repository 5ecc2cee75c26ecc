"""Module extensions for MODULE.bazel, which Bazel 7.4 and later reads."""

load("//disk:secure_boot.bzl", "secure_boot_key")
load("//tools/debian:debian.bzl", "debian_packages")
load(":fetch.bzl", "module_archive")
load(":gazelle.bzl", "gazelle_command")
load(":go_modules.bzl", "go_module_list")
load(":go_program.bzl", "go_program")

_archive_tag = tag_class(
    attrs = {
        "build_file_content": attr.string(doc = "As in module_archive."),
        "executables": attr.string_list(doc = "As in module_archive."),
        "importpath": attr.string(mandatory = True, doc = "As in module_archive."),
        "name": attr.string(mandatory = True, doc = "The repository's name."),
        "sum": attr.string(mandatory = True, doc = "As in module_archive."),
        "version": attr.string(mandatory = True, doc = "As in module_archive."),
    },
    doc = "A Go module's files as they are.",
)

_gazelle_tag = tag_class(
    attrs = {
        "name": attr.string(mandatory = True, doc = "The repository's name."),
        "sum": attr.string(mandatory = True, doc = "As in gazelle_command."),
        "version": attr.string(mandatory = True, doc = "As in gazelle_command."),
    },
    doc = "The gazelle command.",
)

_list_tag = tag_class(
    attrs = {
        "go_mod": attr.label(mandatory = True, doc = "As in go_module_list."),
        "go_sum": attr.label(mandatory = True, doc = "As in go_module_list."),
        "name": attr.string(mandatory = True, doc = "The repository's name."),
    },
    doc = "What tells gazelle the repositories of Go modules.",
)

_program_tag = tag_class(
    attrs = {
        "go_mod": attr.label(mandatory = True, doc = "As in go_program."),
        "go_sum": attr.label(mandatory = True, doc = "As in go_program."),
        "name": attr.string(mandatory = True, doc = "The repository's name."),
        "package": attr.string(mandatory = True, doc = "As in go_program."),
    },
    doc = "A Go program with modules of its own.",
)

def _module_archives_impl(mctx):
    for module in mctx.modules:
        if not module.is_root:
            continue
        for tag in module.tags.archive:
            module_archive(
                name = tag.name,
                build_file_content = tag.build_file_content,
                executables = tag.executables,
                importpath = tag.importpath,
                sum = tag.sum,
                version = tag.version,
            )
        for tag in module.tags.gazelle:
            gazelle_command(name = tag.name, sum = tag.sum, version = tag.version)
        for tag in module.tags.list:
            go_module_list(name = tag.name, go_mod = tag.go_mod, go_sum = tag.go_sum)
        for tag in module.tags.program:
            go_program(name = tag.name, go_mod = tag.go_mod, go_sum = tag.go_sum, package = tag.package)

    # Everything is pinned by hashes: there is nothing for MODULE.bazel.lock.
    return mctx.extension_metadata(reproducible = True)

module_archives = module_extension(
    implementation = _module_archives_impl,
    doc = "Declares what WORKSPACE fetches as Go modules besides the rules.",
    tag_classes = {
        "archive": _archive_tag,
        "gazelle": _gazelle_tag,
        "list": _list_tag,
        "program": _program_tag,
    },
)

_packages_tag = tag_class(
    attrs = {
        "name": attr.string(mandatory = True, doc = "The repository's name."),
        "set": attr.string(mandatory = True, doc = "As in debian_packages."),
        "unpack": attr.bool(default = True, doc = "As in debian_packages."),
    },
    doc = "One set of Debian packages of the lock file.",
)

def _debian_impl(mctx):
    for module in mctx.modules:
        if not module.is_root:
            continue
        for tag in module.tags.packages:
            debian_packages(name = tag.name, set = tag.set, unpack = tag.unpack)

    # The lock file pins the packages.
    return mctx.extension_metadata(reproducible = True)

debian = module_extension(
    implementation = _debian_impl,
    doc = "Declares the Debian packages that the build uses.",
    tag_classes = {"packages": _packages_tag},
)

_key_tag = tag_class(
    attrs = {"name": attr.string(mandatory = True, doc = "The repository's name.")},
    doc = "The key that images are signed with.",
)

def _secure_boot_impl(mctx):
    for module in mctx.modules:
        if not module.is_root:
            continue
        for tag in module.tags.key:
            secure_boot_key(name = tag.name)

    # It is links to files that the environment names, on each machine others.
    return mctx.extension_metadata(reproducible = True)

secure_boot = module_extension(
    implementation = _secure_boot_impl,
    doc = "Declares the key that images are signed with.",
    tag_classes = {"key": _key_tag},
)
