// Package container has no code: its test looks into the container images that
// Bazel builds, and pushes and loads them with the programs that Bazel makes for
// that.
package container
