// Package node is what tests that start a node's system have in common.
package node

import (
	"context"

	"powercloud.unidatum.com/tests/machine"
)

// Machine is a machine of the smallest memory supported, with a node's disk image on a
// virtio disk, and a virtio network card.
func Machine(architecture machine.Architecture, image string) machine.Config {
	return machine.Config{
		Architecture: architecture,
		MemoryMiB:    1024,
		CPUs:         2,
		Disks:        []machine.Disk{{Image: image}},
		Cards:        []machine.Card{{}},
		Random:       true,
	}
}

// ExpectBanner waits until a node that has just been started says that it waits to be enrolled, and
// has an address of QEMU's own network.
func ExpectBanner(ctx context.Context, m *machine.Machine) {
	m.Expect(ctx, `Kernel is locked down from Kernel configuration`)
	m.Expect(ctx, `pcinit begins`)
	m.Expect(ctx, `(?m)^addresses: 10\.0\.2\.15\b`)
	m.Expect(ctx, `is waiting to be enrolled`)
}
