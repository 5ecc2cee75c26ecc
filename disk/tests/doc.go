// Package tests tests the rules for EFI files, disk images and releases, with
// stand-ins for a kernel and a root filesystem, and with programs that others
// wrote to check such files.
package tests
