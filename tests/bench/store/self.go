package main

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/crypto/argon2"
)

// selfCommand is the first argument of this program when it is a competitor
// itself: it runs as a process of its own, to be measured like the others.
const selfCommand = "self"

func runSelf(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%s: what to run is missing", selfCommand)
	}
	switch args[0] {
	case "argon2id":
		// The parameters of a new passphrase slot: 2 passes over 256 MiB in 4
		// lanes.
		argon2.IDKey([]byte(secret), make([]byte, 16), 2, 256<<10, 4, 32)
		return nil
	case "memory":
		return touchMemory()
	case "plant":
		return runPlant(args[1:])
	case "put", "get", "verify":
		return runCeiling(args[0], args[1:])
	}
	return fmt.Errorf("%s: nothing called %q", selfCommand, args[0])
}

// selfTool runs this program again.
func selfTool(p *place, args ...string) (command, error) {
	self, err := os.Executable()
	return command{path: self, args: append([]string{selfCommand}, args...), dir: p.dir, env: p.env()}, err
}

// useMemory runs touchMemory in a process of its own: the memory that this one
// has had would be counted for every child.
func useMemory(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	_, err = output(ctx, command{path: self, args: []string{selfCommand, "memory"}})
	return err
}

// argon is the derivation of a key from a passphrase, alone. What it is
// measured on is its put.
func argon() (tool, error) {
	return tool{
		note:    "one Argon2id derivation and nothing else, shown under put",
		buckets: true,
		put: func(_ context.Context, p *place) ([]command, error) {
			c, err := selfTool(p, "argon2id")
			return []command{c}, err
		},
	}, nil
}

// ceiling is what a store that seals and syncs every blob can reach at best.
func ceiling() (tool, error) {
	operation := func(name string, args func(p *place) []string) func(context.Context, *place) ([]command, error) {
		return func(_ context.Context, p *place) ([]command, error) {
			c, err := selfTool(p, append([]string{name}, args(p)...)...)
			return []command{c}, err
		}
	}
	return tool{
		note: "HMAC-SHA256, XChaCha20-Poly1305 in place, temporary file, fsync, rename, over all cores; no names, no manifests",
		put: operation("put", func(p *place) []string {
			return append([]string{p.source}, p.repos...)
		}),
		get: operation("get", func(p *place) []string {
			return []string{below(p.out, p.source), p.source, p.repos[0]}
		}),
		verify: operation("verify", func(p *place) []string { return p.repos }),
	}, nil
}
