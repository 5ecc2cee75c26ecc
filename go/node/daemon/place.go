package daemon

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"powercloud.unidatum.com/go/node/identity"
	"powercloud.unidatum.com/go/node/state"
	"powercloud.unidatum.com/go/node/volume"
	"powercloud.unidatum.com/go/node/volume/header"
	"powercloud.unidatum.com/go/sys/gpt"
)

const (
	// memory is the folder of a node's state that has no disk. It is in memory.
	memory = runFolder + "/state"
	// target is where the state volume is mounted.
	target = "/var/lib/powercloud"
	// template is the file system that state volumes begin with.
	template = "/usr/lib/powercloud/state.ext4.zst"
	// diskPatience is how long a node waits for its disk: some controllers find theirs
	// only after the first program has begun. diskPause is how often it looks.
	diskPatience = 5 * time.Second
	diskPause    = 250 * time.Millisecond
	// lateDiskPause is how often it looks later, while it is nobody's.
	lateDiskPause = 5 * time.Second
)

// findPlace returns where the node keeps its state.
func (c Config) findPlace(ctx context.Context) (state.Place, error) {
	if c.State != "" {
		return c.folder(c.State), nil
	}
	machine := gpt.ThisMachine()
	found, err := look(ctx, machine)
	switch {
	case errors.Is(err, gpt.ErrNone):
		// It is all that tells why a disk that is there isn't used.
		c.Log.Warn("no disk has a state partition", "err", err)
		find := func() error {
			_, err := machine.Find(header.PartitionType)
			return err
		}
		return provisional{c.folder(memory), find}, nil
	case errors.Is(err, gpt.ErrSeveral):
		return nil, fmt.Errorf("several PowerCloud state partitions: remove or erase the disk that isn't wanted (%w)", err)
	case err != nil:
		return nil, err
	}
	grown, err := machine.Grow(found)
	if err != nil {
		// It is as good as before.
		c.Log.Warn("the state partition can't be made as large as its disk", "err", err)
		grown = found
	}
	if err := c.wipe(commandLine, grown.Device); err != nil {
		return nil, err
	}
	return &state.Disk{
		Partition: grown.Device, Target: target, Random: rand.Reader, Log: c.Log,
		Template: func() (io.ReadCloser, error) { return os.Open(template) },
	}, nil
}

const (
	// commandLine is where the kernel shows its command line, which is a part of the
	// signed image. wipeOption in there has what isn't a volume wiped; no released image
	// has it.
	commandLine = "/proc/cmdline"
	wipeOption  = "powercloud.state.wipe=1"
)

// wipe makes a state partition blank that holds something else than a volume, if the
// image is one that does that: if a word of the command line, which is in a file, says so.
func (c Config) wipe(commandLine, partition string) error {
	words, err := os.ReadFile(commandLine)
	if err != nil {
		// What there is can be erased later, and not be brought back.
		c.Log.Warn("what the state partition holds stays: the kernel's command line can't be read", "err", err)
		return nil
	}
	if !slices.Contains(strings.Fields(string(words)), wipeOption) {
		return nil
	}
	wiped, err := volume.Wipe(partition)
	switch {
	case wiped:
		c.Log.Warn("the state partition held something else, and is wiped", "partition", partition)
	case errors.Is(err, volume.ErrHeaderless):
		// The node says at its enrollment that it isn't blank.
		c.Log.Warn("the state partition isn't wiped: erase it if nobody needs what it holds", "err", err)
		return nil
	}
	return err
}

// folder returns a place that isn't on a disk of the node's.
func (c Config) folder(path string) state.Place {
	c.Log.Warn("no state disk (powercloud.state=); node state is kept in RAM and lost at reboot")
	return state.Folder{Path: path, Parts: append(identity.Names(), logFolder), Used: func(folder string) (bool, error) {
		kept, err := identity.Load(folder)
		switch {
		case errors.Is(err, identity.ErrNone):
			return false, nil
		case err != nil:
			return false, err
		}
		i, _ := kept.Current()
		i.Wipe()
		return true, nil
	}}
}

// provisional is a place in memory, until a disk comes.
type provisional struct {
	state.Place
	// find looks for the state partition, as gpt.Machine does.
	find func() error
}

// Superseded waits for a state partition, or for several, which the node then refuses.
func (p provisional) Superseded(ctx context.Context) error {
	ticker := time.NewTicker(lateDiskPause)
	defer ticker.Stop()
	for {
		if err := p.find(); err == nil || errors.Is(err, gpt.ErrSeveral) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// look finds the state partition, and waits a while for a disk that has one.
func look(ctx context.Context, machine gpt.Machine) (gpt.Partition, error) {
	for until := time.Now().Add(diskPatience); ; {
		found, err := machine.Find(header.PartitionType)
		if !errors.Is(err, gpt.ErrNone) || time.Now().After(until) {
			return found, err
		}
		select {
		case <-ctx.Done():
			return gpt.Partition{}, ctx.Err()
		case <-time.After(diskPause):
		}
	}
}
