package storage

import (
	"os"
	"slices"

	"powercloud.unidatum.com/go/blob"
)

// localDirectories returns the directories among the locations, which put
// leaves out of the trees that it stores.
func localDirectories(specs []blob.Spec) []os.FileInfo {
	var directories []os.FileInfo
	for _, spec := range slices.Concat(specs, parts(specs)) {
		if spec.Scheme != blob.SchemeDir {
			continue
		}
		// One that isn't there can't be in a tree.
		if info, err := os.Stat(spec.Dir); err == nil {
			directories = append(directories, info)
		}
	}
	return directories
}

// parts returns the locations that the erasure-coded sets among specs consist
// of.
func parts(specs []blob.Spec) []blob.Spec {
	var all []blob.Spec
	for _, spec := range specs {
		all = append(all, spec.Parts...)
	}
	return all
}
