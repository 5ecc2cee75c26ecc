package buildfiles

import (
	"os"
	"strings"
)

// Runfile returns where a file of another repository lies for a program that
// Bazel runs, given what $(rootpath) says of it: Bazel before version 8 puts a
// link below "external/", and all versions put it beside the main repository.
func Runfile(path string) string {
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if rest, external := strings.CutPrefix(path, "external/"); external {
		return "../" + rest
	}
	return path
}
