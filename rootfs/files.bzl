"""What is in a node's root filesystem, and nothing else is."""

load(":rootfs.bzl", "device", "directory", "file", "program")

# The root is in memory. Programs are static, so there are no libraries; there is
# no shell and nothing to log in with. pcinit mounts what is mounted.
FILES = [
    # The kernel opens the console for its first program before anything is
    # mounted there.
    directory("/dev"),
    device("/dev/console", "character", 5, 1),
    # Where the kernel's own file systems go.
    directory("/proc", mode = "0555"),
    directory("/sys", mode = "0555"),
    # What is written while the node runs. /etc has the resolver's configuration.
    directory("/etc"),
    directory("/run"),
    directory("/tmp", mode = "1777"),
    directory("/var"),
    directory("/var/lib"),
    # PID 1, and the program that it runs.
    program("/init", "//go/cmd/pcinit"),
    directory("/sbin"),
    program("/sbin/pcd", "//go/cmd/pcd"),
    # The file system that state volumes begin with.
    directory("/usr"),
    directory("/usr/lib"),
    directory("/usr/lib/powercloud"),
    file("/usr/lib/powercloud/state.ext4.zst", "//rootfs:state"),
]
