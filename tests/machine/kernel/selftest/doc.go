// Package selftest has no code: its test runs as the first program of a kernel,
// by the rule kernel_test, and looks at where it is.
package selftest
