"""rules_shell for Bazel 4.2: the sh_binary that Bazel has built in."""

sh_binary = native.sh_binary
