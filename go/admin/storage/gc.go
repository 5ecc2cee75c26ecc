package storage

import (
	"context"
	"time"

	"github.com/urfave/cli/v3"

	"powercloud.unidatum.com/go/admin/command"
	"powercloud.unidatum.com/go/admin/progress"
	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/store/gc"
)

func (g *group) gcCommand() *cli.Command {
	return &cli.Command{
		Name:      "gc",
		Usage:     "Delete chunks that no object uses",
		UsageText: "pcctl --repo LOC,... gc [--grace DURATION] [--dry-run] [--json]",
		Description: `Deletes, from every location, the chunks that no object has used for the
grace period, and what interrupted writes left behind. It takes two runs: one
records what is unused, a later one deletes what still is. Every location must
be reachable.

Choose a grace period that is longer than any 'pcctl put' takes.

With --json: {"chunks_in_use": N, "deleted": N, "would_delete": N,
"waiting": N, "grace": DURATION, "dry_run": BOOL}`,
		Flags: []cli.Flag{
			&cli.DurationFlag{
				Name:        "grace",
				Usage:       "How long a chunk must stay unused, as a `DURATION` such as 36h",
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
	repo, _, err := g.unlock(ctx, cmd, waitForAll)
	if err != nil {
		return err
	}
	defer g.leave(ctx, repo)
	if err := repo.Mixed(); err != nil {
		return err
	}
	bar := g.bar("collecting", progress.Items)
	result, err := gc.Run(ctx, repo, gc.Options{
		Grace: grace, DryRun: dryRun, Now: g.env.Now, Random: g.env.Rand, Progress: bar,
	})
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
		return command.WriteJSON(g.env.Stdout, document)
	}
	did := "deleted"
	if dryRun {
		did = "would delete"
	}
	return g.env.Printf("%d chunks in use, %s %d, %d unreferenced waiting out the %s grace period\n",
		result.InUse, did, result.Deleted, result.Waiting, grace)
}
