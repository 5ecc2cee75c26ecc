// Package debian has no code: the folder holds the repository rule for Debian
// packages, which debian.bzl documents, and its lock file. The test runs the
// rule, in a Bazel of its own.
package debian
