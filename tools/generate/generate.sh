#!/bin/bash
# Runs tools/generate/update with the go command instead of a program that Bazel
# builds: the BUILD files of that program may be the very ones that are stale.
# The arguments are the paths of the go command, of gazelle, and of the file that
# tells gazelle the Go modules' repositories.
set -euo pipefail
arguments=()
for path in "$@"; do
  # Bazel before version 8 names files of other repositories from the folder of
  # all of them, and puts them beside the main one.
  [ -e "$path" ] || path=../${path#external/}
  arguments+=("$(readlink -f "$path")")
done
cd "$BUILD_WORKSPACE_DIRECTORY"
export GOTOOLCHAIN=local GOWORK=off GOFLAGS=
exec "${arguments[0]}" run ./tools/generate/update "${arguments[@]:1}"
