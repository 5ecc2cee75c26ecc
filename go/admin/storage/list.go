package storage

import (
	"bufio"
	"context"
	"fmt"
	"time"

	"github.com/urfave/cli/v3"

	"powercloud.unidatum.com/go/admin/command"
	"powercloud.unidatum.com/go/admin/progress"
	"powercloud.unidatum.com/go/store"
)

func (g *group) lsCommand() *cli.Command {
	return &cli.Command{
		Name:      "ls",
		Usage:     "List objects",
		ArgsUsage: "[PREFIX]",
		UsageText: "pcctl --repo LOC,... ls [--json] [PREFIX]",
		Description: `Lists the objects whose names start with PREFIX, or all: size in bytes, when
this version was stored (local time), and name.

With --json, a line for each object:
{"name": NAME, "bytes": N, "chunks": N, "modified": TIME}`,
		Flags:  []cli.Flag{command.JSONFlag()},
		Action: action(0, 1, g.ls),
	}
}

// objectResult describes an object in JSON.
type objectResult struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	Chunks int    `json:"chunks"`
	// Modified is when this version was stored, in RFC 3339 and UTC.
	Modified string `json:"modified"`
	// File is where get put the object.
	File string `json:"file,omitempty"`
}

func newObjectResult(o store.Object) objectResult {
	return objectResult{
		Name: o.Name, Bytes: o.Size, Chunks: o.Chunks,
		Modified: o.Modified.UTC().Format(time.RFC3339Nano),
	}
}

func (g *group) ls(ctx context.Context, cmd *cli.Command, args []string) error {
	prefix := ""
	if len(args) == 1 {
		prefix = args[0]
	}
	bar := &progress.Bar{}
	s, err := g.Objects(ctx, cmd, bar)
	if err != nil {
		return err
	}
	defer g.Leave(ctx, s.Repository)
	// What could be read is printed even when something could not.
	list, failure := s.List(ctx, prefix)
	if err := g.printObjects(list, prefix, cmd.Bool("json")); err != nil {
		return err
	}
	if failure != nil {
		return failure
	}
	g.WarnCorrupt(s, bar)
	return nil
}

// printObjects prints a line for each object of the prefix.
func (g *group) printObjects(list *store.Listing, prefix string, json bool) error {
	lines := bufio.NewWriter(g.Env.Stdout)
	for o := range list.Objects() {
		if isHidden(o.Name, prefix) {
			continue
		}
		var err error
		if json {
			err = command.WriteJSON(lines, newObjectResult(o))
		} else {
			_, err = fmt.Fprintf(lines, "%12d  %s  %s\n", o.Size,
				o.Modified.In(g.Env.Zone).Format("2006-01-02 15:04"), command.Printable(o.Name))
		}
		if err != nil {
			return &command.OutputError{Err: err}
		}
	}
	if err := lines.Flush(); err != nil {
		return &command.OutputError{Err: err}
	}
	return nil
}

func (g *group) rmCommand() *cli.Command {
	return &cli.Command{
		Name:      "rm",
		Usage:     "Delete an object",
		ArgsUsage: "NAME",
		UsageText: "pcctl --repo LOC,... rm NAME",
		Description: `Deletes object NAME and prints nothing. Its chunks stay until 'pcctl gc'
reclaims them.`,
		Action: action(1, 1, g.rm),
	}
}

func (g *group) rm(ctx context.Context, cmd *cli.Command, args []string) error {
	if err := refuseSystem(args[0]); err != nil {
		return err
	}
	s, err := g.Objects(ctx, cmd, &progress.Bar{})
	if err != nil {
		return err
	}
	defer g.Leave(ctx, s.Repository)
	if err := s.Remove(ctx, args[0]); err != nil {
		return err
	}
	g.WarnMissed(s)
	return nil
}
