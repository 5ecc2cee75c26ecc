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

// Port is the TCP port of a node's API.
const Port = 7443

// Code waits for the code that the console shows, of a kind: "enrollment" or "unlock".
func Code(ctx context.Context, m *machine.Machine, kind string) string {
	return m.Expect(ctx, `(?m)^`+kind+` code: (([A-Z2-7]{4}-)+[A-Z2-7]{4})\n`)[1]
}

// ExpectBanner waits until a node that has just been started says that it waits to be
// enrolled, and has an address of QEMU's own network.
func ExpectBanner(ctx context.Context, m *machine.Machine) {
	m.Expect(ctx, `Kernel is locked down from Kernel configuration`)
	m.Expect(ctx, `pcinit begins`)
	m.Expect(ctx, `(?m)^addresses: 10\.0\.2\.15\b`)
	m.Expect(ctx, `is waiting to be enrolled`)
}
