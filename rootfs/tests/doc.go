// Package tests tests the rule rootfs with a small declaration, and looks at what
// nodes have.
package tests
