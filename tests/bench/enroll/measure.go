package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"powercloud.unidatum.com/tests/machine"
	"powercloud.unidatum.com/tests/node"
)

// figure is something that is measured.
type figure string

// What is measured, as the comment of this program says.
const (
	enrolled   figure = "enrolled"
	enrollment figure = "enrollment"
	opened     figure = "open"
	unlock     figure = "unlock"
)

// allFigures are in the order of the report.
func allFigures() []figure { return []figure{enrolled, enrollment, opened, unlock} }

// times are one round's.
type times map[figure]time.Duration

const (
	port = 7443
	// name is the node's.
	name = "home-1"
	// code is a pattern for a code that a node with an address shows after its kind.
	code = `addresses: 10\.0\.2\.15\b(?s:.*?)\n%s code: ([A-Z2-7-]+)\n`
)

var (
	enrollmentCode = regexp.MustCompile(fmt.Sprintf(code, "enrollment"))
	unlockCode     = regexp.MustCompile(fmt.Sprintf(code, "unlock"))
)

// measure takes one node from its first start to the time that it is open again.
func measure(ctx context.Context, opts options, image string) (_ times, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, opts.patience, fmt.Errorf("%v were not enough", opts.patience))
	defer cancel()
	folder, err := os.MkdirTemp("", "enroll-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for a cluster: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	a, err := newAdmin(ctx, folder)
	if err != nil {
		return nil, err
	}
	config := node.Machine(machine.AMD64, image)
	config.Name = "enroll"
	config.Cards[0].Forward = []int{port}
	// The firmware finds the disk at once, before and after the restart.
	config.Disks[0].Boot = 1
	taken := times{}
	err = machine.Observe(ctx, config, func(ctx context.Context, o *machine.Observed) error {
		address, err := o.Address(ctx, port)
		if err != nil {
			return err
		}
		if err := a.enroll(ctx, o.Console(), address, taken); err != nil {
			return err
		}
		if _, err := a.run(ctx, "node", "reboot", name); err != nil {
			return err
		}
		return a.unlock(ctx, o.Console(), address, taken)
	})
	return taken, err
}

// enroll makes the node a member.
func (a *admin) enroll(ctx context.Context, console *machine.Console, address string, taken times) error {
	found, err := console.Find(ctx, enrollmentCode)
	if err != nil {
		return err
	}
	requests, err := a.run(ctx, "node", "enroll", address, found[1], name)
	if err != nil {
		return err
	}
	// What the node offers, its enrollment, its mesh key, and the lists.
	if len(requests) < 3 {
		return fmt.Errorf("node enroll made %d requests", len(requests))
	}
	first, second := requests[0], requests[1]
	taken[enrolled], taken[enrollment] = second.answered.Sub(first.began), second.answered.Sub(second.began)
	return nil
}

// unlock opens the node's volume.
func (a *admin) unlock(ctx context.Context, console *machine.Console, address string, taken times) error {
	found, err := console.Find(ctx, unlockCode)
	if err != nil {
		return err
	}
	requests, err := a.run(ctx, "node", "unlock", name, found[1], address)
	if err != nil {
		return err
	}
	// Whose volume it is, and the key.
	if len(requests) != 2 {
		return fmt.Errorf("node unlock made %d requests", len(requests))
	}
	answers, err := a.run(ctx, "node", "info", name)
	if err != nil {
		return err
	}
	if len(answers) != 1 {
		return fmt.Errorf("node info made %d requests", len(answers))
	}
	taken[unlock], taken[opened] = requests[1].answered.Sub(requests[1].began), answers[0].answered.Sub(requests[1].began)
	return nil
}

// repository is where an admin's cluster is.
func repository(folder string) string {
	list := ""
	for _, name := range []string{"home", "colo", "cloud"} {
		list += "," + filepath.Join(folder, name)
	}
	return list[1:]
}
