"""rules_shell for Bazel 4.2: the sh_test that Bazel has built in."""

sh_test = native.sh_test
