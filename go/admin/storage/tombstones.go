package storage

import (
	"context"
	"time"

	"powercloud.unidatum.com/go/admin/command"
	"powercloud.unidatum.com/go/admin/progress"
	"powercloud.unidatum.com/go/store/gc"
	"powercloud.unidatum.com/go/store/repository"
)

// tombstonesResult is what gc --tombstones --json prints.
type tombstonesResult struct {
	Tombstones  int    `json:"tombstones"`
	Deleted     int    `json:"deleted"`
	WouldDelete int    `json:"would_delete"`
	Incomplete  int    `json:"incomplete"`
	Waiting     int    `json:"waiting"`
	Grace       string `json:"grace"`
	DryRun      bool   `json:"dry_run"`
	// List is absent unless it is a dry run.
	List []tombstoneResult `json:"list,omitempty"`
}

// tombstoneResult describes a tombstone in JSON.
type tombstoneResult struct {
	Name string `json:"name"`
	// Removed is when the object was removed, in RFC 3339 and UTC.
	Removed string `json:"removed"`
	State   string `json:"state"`
}

// gcTombstones collects tombstones and prints the result.
func (g *group) gcTombstones(ctx context.Context, repo *repository.Repository, options gc.Options, json bool) error {
	bar := g.Bar("collecting", progress.Items)
	options.Progress = bar
	result, err := gc.Tombstones(ctx, repo, options)
	bar.Close()
	if err != nil {
		return err
	}
	if json {
		return command.WriteJSON(g.Env.Stdout, newTombstonesResult(result, options))
	}
	did := "deleted"
	if options.DryRun {
		did = "would delete"
	}
	for _, t := range result.List {
		if err := g.Env.Printf("%-10s  %s  %s\n", tombstoneState(t.State),
			t.Removed.In(g.Env.Zone).Format("2006-01-02 15:04"), command.Printable(t.Object)); err != nil {
			return err
		}
	}
	return g.Env.Printf("%d tombstones, %s %d, %d not at every location, %d waiting out the %s grace period\n",
		result.Total, did, result.Deleted, result.Incomplete, result.Waiting, options.Grace)
}

func newTombstonesResult(result gc.TombstoneResult, options gc.Options) tombstonesResult {
	document := tombstonesResult{
		Tombstones: result.Total, Incomplete: result.Incomplete, Waiting: result.Waiting,
		Grace: options.Grace.String(), DryRun: options.DryRun,
	}
	if options.DryRun {
		document.WouldDelete = result.Deleted
	} else {
		document.Deleted = result.Deleted
	}
	for _, t := range result.List {
		document.List = append(document.List, tombstoneResult{
			Name: t.Object, Removed: t.Removed.UTC().Format(time.RFC3339Nano), State: tombstoneState(t.State),
		})
	}
	return document
}

// tombstoneState returns the word for a tombstone's state.
func tombstoneState(state gc.TombstoneState) string {
	switch state {
	case gc.TombstoneDue:
		return "due"
	case gc.TombstoneIncomplete:
		return "incomplete"
	case gc.TombstoneWaiting:
		return "waiting"
	}
	return ""
}
