// Package kernel tests the kernels of nodes as they were built: their hardening,
// their drivers and their form.
package kernel
