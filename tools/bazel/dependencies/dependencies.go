//go:build never

// Package dependencies keeps in go.mod the modules that only Bazel's rules are
// built from. It is never built itself.
package dependencies

import (
	_ "github.com/pmezard/go-difflib/difflib" // by rules_go's nogo
)
