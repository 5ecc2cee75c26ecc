// Package secureboot tests with real firmware that Secure Boot starts a node's EFI
// file when it is signed by a key that the machine trusts, and no other.
package secureboot
