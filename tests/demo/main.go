// Command demo is the end of tools/demo: it starts the node's image in a virtual
// machine, shows its console, makes it a member of the demo's cluster with pcctl, and
// shows how it is.
//
// It takes pcctl's path and the folder that pcctl works in, and everything else from
// the environment, as pcctl does.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"

	"powercloud.unidatum.com/tests/machine"
	"powercloud.unidatum.com/tools/lint"
)

// image is set by Bazel to the node's disk image.
var image string

const (
	// apiPort is the port of a node's API.
	apiPort = 7443
	// name is the node's.
	name = "demo-node"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "demo: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	if len(arguments) != 2 {
		return errors.New("it takes pcctl's path and the folder of the demo's cluster")
	}
	if image == "" {
		return errors.New("only Bazel builds what this starts: tools/demo")
	}
	disk, err := lint.Runfile(image)
	if err != nil {
		return fmt.Errorf("find the node's image: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, machine.Patience)
	defer cancel()
	return machine.Observe(ctx, machine.Config{
		Name: "node", Architecture: machine.AMD64, MemoryMiB: 1024, CPUs: 2, Random: true,
		Disks: []machine.Disk{{Image: disk}},
		Cards: []machine.Card{{Forward: []int{apiPort}}},
	}, func(ctx context.Context, o *machine.Observed) error {
		return show(ctx, o, session{arguments[0], arguments[1]})
	})
}

// banner is what a node's console shows once it can be enrolled, and has an address.
var banner = regexp.MustCompile(`PowerCloud \S+\naddresses: \d[^\n]*\n(?s:.*?)enrollment code: ([A-Z2-7-]+)\n`)

// show shows a node's first minutes.
func show(ctx context.Context, o *machine.Observed, pcctl session) error {
	found, err := o.Console().Find(ctx, banner)
	if err != nil {
		return err
	}
	fmt.Printf("The node's console shows:\n\n%s\n", found[0])
	address, err := o.Address(ctx, apiPort)
	if err != nil {
		return err
	}
	for _, command := range [][]string{
		{"node", "enroll", address, found[1], name},
		{"node", "info", name},
		{"status"},
		{"node", "poweroff", name},
	} {
		said, err := pcctl.run(ctx, command...)
		if err != nil {
			return err
		}
		if command[0] == "status" && !strings.HasSuffix(said, "\nall nodes healthy\n") {
			return errors.New("not all nodes are healthy")
		}
	}
	return nil
}

// session runs pcctl.
type session struct{ pcctl, folder string }

// run shows a command and what it prints, and returns the latter.
func (s session) run(ctx context.Context, arguments ...string) (string, error) {
	fmt.Printf("$ pcctl %s\n", strings.Join(arguments, " "))
	command := exec.CommandContext(ctx, s.pcctl, arguments...)
	var said strings.Builder
	command.Dir, command.Stdout, command.Stderr = s.folder, io.MultiWriter(os.Stdout, &said), os.Stderr
	err := command.Run()
	return said.String(), err
}
