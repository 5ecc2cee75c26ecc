package storage

import (
	"context"
	"time"

	"github.com/urfave/cli/v3"

	"powercloud.unidatum.com/go/admin/command"
	"powercloud.unidatum.com/go/admin/progress"
	"powercloud.unidatum.com/go/admin/session"
	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/store/gc"
)

func (g *group) gcCommand() *cli.Command {
	return &cli.Command{
		Name:      "gc",
		Usage:     "Delete chunks that no object uses",
		UsageText: "pcctl --repo LOC,... gc [--tombstones] [--grace DURATION] [--dry-run] [--json]",
		Description: `Deletes, from every location, the chunks that no object has used for the
grace period, and what interrupted writes left behind. It takes two runs: one
records what is unused, a later one deletes what still is. Every location must
be reachable.

Choose a grace period that is longer than any 'pcctl put' takes.

With --tombstones, deletes the tombstones of removed objects instead, once
every location was found to have them in two runs with the grace period between
them. With --dry-run, they are listed. A location that comes back with older
data afterwards brings the objects back that it had then.

With --json: {"chunks_in_use": N, "deleted": N, "would_delete": N,
"waiting": N, "grace": DURATION, "dry_run": BOOL}; with --tombstones:
{"tombstones": N, "deleted": N, "would_delete": N, "incomplete": N,
"waiting": N, "grace": DURATION, "dry_run": BOOL, "list": [{"name": NAME,
"removed": TIME, "state": STATE}, ...]}, the list with --dry-run only.`,
		Flags: []cli.Flag{
			&cli.BoolFlag{
				Name:        "tombstones",
				Usage:       "Delete tombstones that every location has, instead of chunks",
				HideDefault: true,
			},
			&cli.DurationFlag{
				Name:        "grace",
				Usage:       "How long a chunk must stay unused, or a tombstone be everywhere, as a `DURATION` such as 36h",
				Value:       24 * time.Hour,
				DefaultText: "24h",
			},
			&cli.BoolFlag{
				Name:        "dry-run",
				Usage:       "Report what would be deleted, delete nothing",
				HideDefault: true,
			},
			command.JSONFlag(),
		},
		Action: action(0, 0, g.gc),
	}
}

// gcResult is what gc --json prints.
type gcResult struct {
	InUse       int    `json:"chunks_in_use"`
	Deleted     int    `json:"deleted"`
	WouldDelete int    `json:"would_delete"`
	Waiting     int    `json:"waiting"`
	Grace       string `json:"grace"`
	DryRun      bool   `json:"dry_run"`
}

func (g *group) gc(ctx context.Context, cmd *cli.Command, _ []string) error {
	grace, dryRun := cmd.Duration("grace"), cmd.Bool("dry-run")
	if grace < 0 {
		return command.Usagef("gc: --grace %s is negative", grace)
	}
	if dryRun {
		ctx = blob.ReadOnly(ctx)
	}
	repo, _, err := g.Unlock(ctx, cmd, session.WaitForAll)
	if err != nil {
		return err
	}
	defer g.Leave(ctx, repo)
	if err := repo.Mixed(); err != nil {
		return err
	}
	options := gc.Options{Grace: grace, DryRun: dryRun, Now: g.Env.Now, Random: g.Env.Rand}
	if cmd.Bool("tombstones") {
		return g.gcTombstones(ctx, repo, options, cmd.Bool("json"))
	}
	bar := g.Bar("collecting", progress.Items)
	options.Progress = bar
	result, err := gc.Run(ctx, repo, options)
	bar.Close()
	if err != nil {
		return err
	}
	if cmd.Bool("json") {
		document := gcResult{InUse: result.InUse, Waiting: result.Waiting, Grace: grace.String(), DryRun: dryRun}
		if dryRun {
			document.WouldDelete = result.Deleted
		} else {
			document.Deleted = result.Deleted
		}
		return command.WriteJSON(g.Env.Stdout, document)
	}
	did := "deleted"
	if dryRun {
		did = "would delete"
	}
	return g.Env.Printf("%d chunks in use, %s %d, %d unreferenced waiting out the %s grace period\n",
		result.InUse, did, result.Deleted, result.Waiting, grace)
}
