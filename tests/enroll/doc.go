// Package enroll has nodes join a cluster, and unlocks them after a restart, with the
// real pcctl: the node's image in a virtual machine, by its console and by a join
// bundle.
package enroll
