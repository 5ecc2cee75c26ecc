// Package tests tests the rule rootfs with a small declaration.
package tests
