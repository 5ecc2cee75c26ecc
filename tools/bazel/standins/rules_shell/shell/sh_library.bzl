"""rules_shell for Bazel 4.2: the sh_library that Bazel has built in."""

sh_library = native.sh_library
