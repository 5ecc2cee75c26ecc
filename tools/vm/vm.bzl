"""Tests in virtual machines.

vm_test is a go_test that starts machines with the Go package
//tests/machine. kernel_test runs a go_test as the first program of a kernel.

Both take a machine of two processors for themselves (the tag cpu:2), so that on
a small host one runs at a time. A vm_test that mostly waits says so, and takes
one processor.
"""

load("@io_bazel_rules_go//go:def.bzl", "go_test")

_TAGS = ["cpu:2"]

def vm_test(name, image = None, arch = "amd64", size = "large", data = [], env = {}, tags = [], waits = False, **kwargs):
    """A Go test that starts machines.

    QEMU, its firmware and swtpm are there by the dependency on
    //tests/machine. gazelle writes this rule where a BUILD file says
    `# gazelle:map_kind go_test vm_test //tools/vm:vm.bzl`.

    Args:
      name: the name of the test.
      image: what the machines start from: a target of one file, which the test
        finds by machine.Image.
      arch: the image's architecture, amd64 or arm64, which machine.Image tells too.
      size: as of any test. "large" has 15 minutes.
      data: as of go_test.
      env: as of go_test.
      tags: as of any test.
      waits: whether its machines are idle for most of the time: another test then
        runs beside it.
      **kwargs: what else go_test takes, such as srcs, deps and timeout.
    """
    if arch not in ["amd64", "arm64"]:
        fail("%s: arch must be amd64 or arm64, not %s" % (name, arch))
    env = dict(env, MACHINE_ARCHITECTURE = arch)
    if image:
        data = data + [image]
        env["MACHINE_IMAGE"] = "$(rootpath %s)" % image
    go_test(
        name = name,
        size = size,
        data = data,
        env = env,
        tags = tags + ([] if waits else _TAGS),
        **kwargs
    )

def _kernel_test_impl(ctx):
    runner = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.symlink(output = runner, target_file = ctx.executable._runner, is_executable = True)
    test = ctx.attr.test[DefaultInfo]
    program = test.files_to_run.executable
    list = ctx.actions.declare_file(ctx.label.name + ".runfiles_list")
    lines = ctx.actions.args()
    lines.add_all(test.default_runfiles.files, map_each = _short_path, expand_directories = False)
    lines.set_param_file_format("multiline")
    ctx.actions.write(list, lines)
    init = ctx.file._init_arm64 if ctx.attr.arch == "arm64" else ctx.file._init_amd64
    runfiles = ctx.runfiles(files = [ctx.file.kernel, init, list, program])
    for other in [test.default_runfiles, ctx.attr._runner[DefaultInfo].default_runfiles]:
        runfiles = runfiles.merge(other)
    environment = dict(ctx.attr.env)
    environment.update({
        "KERNEL_TEST_ARCHITECTURE": ctx.attr.arch,
        "KERNEL_TEST_DISKS": ",".join(ctx.attr.disks),
        "KERNEL_TEST_FILES": list.short_path,
        "KERNEL_TEST_FOLDER": ctx.attr.test.label.package,
        "KERNEL_TEST_FORWARD": ",".join(ctx.attr.env.keys()),
        "KERNEL_TEST_INIT": init.short_path,
        "KERNEL_TEST_KERNEL": ctx.file.kernel.short_path,
        "KERNEL_TEST_MEMORY": str(ctx.attr.memory),
        "KERNEL_TEST_PROGRAM": program.short_path,
    })
    return [
        DefaultInfo(executable = runner, runfiles = runfiles),
        testing.TestEnvironment(environment),
    ]

def _short_path(file):
    return file.short_path

_kernel_test = rule(
    implementation = _kernel_test_impl,
    test = True,
    attrs = {
        "arch": attr.string(default = "amd64", values = ["amd64", "arm64"]),
        "disks": attr.string_list(),
        "env": attr.string_dict(),
        "kernel": attr.label(mandatory = True, allow_single_file = True),
        "memory": attr.int(default = 512),
        "test": attr.label(mandatory = True, executable = True, cfg = "target"),
        "_init_amd64": attr.label(default = "//tests/machine/kernel/init:init-amd64", allow_single_file = True),
        "_init_arm64": attr.label(default = "//tests/machine/kernel/init:init-arm64", allow_single_file = True),
        "_runner": attr.label(default = "//tests/machine/kernel/runner", executable = True, cfg = "target"),
    },
)

def kernel_test(name, kernel, test, arch = "amd64", memory = 512, disks = [], env = {}, size = "medium", tags = [], **kwargs):
    """Runs a go_test as the first program of a kernel, as root, in a machine of its own.

    Its output, its status, its report for Bazel, --test_filter and --test_arg
    are those of the test itself. The test must be static, and sees no network
    but the loopback one, and of files only its own runfiles.

    Args:
      name: the name of the test.
      kernel: the kernel, one file: for amd64 a bzImage, for arm64 an EFI file.
      test: the go_test, for that architecture (goarch), with the tag manual
        where it is not to run here as well.
      arch: the machine's architecture, amd64 or arm64.
      memory: the machine's memory in MiB.
      disks: blank disks, which the machine has as /dev/vda, /dev/vdb and so on.
        Each is a size in MiB, and where its sectors don't have 512 bytes, a slash
        and their size: "1024" or "1024/4096".
      env: variables that the test gets. Those of the go_test don't count.
      size: as of any test. "medium" has 5 minutes.
      tags: as of any test.
      **kwargs: what else any test takes, such as timeout and args.
    """
    _kernel_test(
        name = name,
        arch = arch,
        disks = disks,
        env = env,
        kernel = kernel,
        memory = memory,
        size = size,
        tags = tags + _TAGS,
        test = test,
        **kwargs
    )
