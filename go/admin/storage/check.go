package storage

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/urfave/cli/v3"

	"powercloud.unidatum.com/go/admin/command"
	"powercloud.unidatum.com/go/admin/progress"
	"powercloud.unidatum.com/go/admin/session"
	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/store/repair"
	"powercloud.unidatum.com/go/store/repository"
)

const reportJSON = `
With --json: {"objects": N, "deleted": N, "chunks_in_use": N,
"chunks_unreferenced": N, "locations": [{"location": LOC, "blobs": N,
"missing": N, "stale": N, "corrupt": N, "repaired": N, "status": STATUS},
...], "damaged": [NAME, ...], "different_header": [LOC, ...]}, with the table's
STATUS. An erasure-coded set has "parts": [{"part": LOC, "missing": N,
"stale": N, "corrupt": N, "repaired": N, "error": TEXT}, ...] as well, which
counts shards.`

func verifyFlag() cli.Flag {
	return &cli.BoolFlag{
		Name:        "verify",
		Usage:       "Download and authenticate every copy of every chunk",
		HideDefault: true,
	}
}

func (g *group) checkCommand() *cli.Command {
	return &cli.Command{
		Name:      "check",
		Usage:     "Compare the storage locations",
		UsageText: "pcctl --repo LOC,... check [--verify] [--json]",
		Description: `Shows, for each location, how many of the cluster's blobs it has, and how many
are missing, stale (older than the newest version) or corrupt. Changes
nothing. Manifests are always read; chunks are compared by listing them, or
with --verify by reading them.

Fails when locations differ or can't be reached, or when an object is DAMAGED:
data of it is missing from every location.
` + reportJSON,
		Flags: []cli.Flag{verifyFlag(), command.JSONFlag()},
		Action: action(0, 0, func(ctx context.Context, cmd *cli.Command, _ []string) error {
			unit := progress.Items
			if cmd.Bool("verify") {
				unit = progress.Bytes
			}
			return g.compare(ctx, cmd, "checking", unit, repair.Check)
		}),
	}
}

func (g *group) repairCommand() *cli.Command {
	return &cli.Command{
		Name:      "repair",
		Usage:     "Bring every storage location up to date",
		UsageText: "pcctl --repo LOC,... repair [--verify] [--json]",
		Description: `Copies to each location what it lacks and replaces what is stale or corrupt,
after a location was down or was added. Each copy is authenticated before it
is written. With --verify, every copy of every chunk is read, and corrupt ones
are found and replaced too.

A location with a different cluster's header is reported, never changed.
` + reportJSON,
		Flags: []cli.Flag{verifyFlag(), command.JSONFlag()},
		Action: action(0, 0, func(ctx context.Context, cmd *cli.Command, _ []string) error {
			return g.compare(ctx, cmd, "repairing", progress.Bytes, repair.Repair)
		}),
	}
}

// reportResult is what check and repair print with --json.
type reportResult struct {
	Objects         int              `json:"objects"`
	Deleted         int              `json:"deleted"`
	InUse           int              `json:"chunks_in_use"`
	Unreferenced    int              `json:"chunks_unreferenced"`
	Locations       []locationResult `json:"locations"`
	Damaged         []string         `json:"damaged"`
	DifferentHeader []string         `json:"different_header"`
}

type locationResult struct {
	Location string `json:"location"`
	Blobs    int    `json:"blobs"`
	Missing  int    `json:"missing"`
	Stale    int    `json:"stale"`
	Corrupt  int    `json:"corrupt"`
	Repaired int    `json:"repaired"`
	Status   string `json:"status"`
	// Parts are those of an erasure-coded set.
	Parts []partResult `json:"parts,omitempty"`
}

type partResult struct {
	Part     string `json:"part"`
	Missing  int    `json:"missing"`
	Stale    int    `json:"stale"`
	Corrupt  int    `json:"corrupt"`
	Repaired int    `json:"repaired"`
	Error    string `json:"error,omitempty"`
}

// compare checks or repairs, and prints the report.
func (g *group) compare(ctx context.Context, cmd *cli.Command, work string, unit progress.Unit,
	run func(context.Context, *repository.Repository, repair.Options) (*repair.Report, error)) error {
	// What the report doesn't count isn't changed either.
	repo, _, err := g.Unlock(blob.ReadOnly(ctx), cmd, session.WaitForAll)
	if err != nil {
		return err
	}
	defer g.Leave(ctx, repo)
	bar := g.Bar(work, unit)
	report, err := run(ctx, repo, repair.Options{
		Verify: cmd.Bool("verify"), Progress: bar, Random: g.Env.Rand,
	})
	bar.Close()
	if err != nil {
		return err
	}
	if report.Doubt != "" {
		g.Warn("%s", report.Doubt)
	}
	for _, l := range report.Locations {
		if l.Removed > 0 {
			g.Warn("%s had %d manifests that can't be read and that no majority can have taken; they were deleted", l.Location, l.Removed)
		}
	}
	if cmd.Bool("json") {
		err = command.WriteJSON(g.Env.Stdout, newReportResult(report))
	} else {
		err = g.printReport(report)
	}
	if err != nil {
		return err
	}
	return report.Err()
}

func (g *group) printReport(report *repair.Report) error {
	if err := g.Env.Printf("%d objects, %d deleted, %d chunks in use, %d unreferenced (reclaimed by gc)\n",
		report.Objects, report.Deleted, report.InUse, report.Unreferenced); err != nil {
		return err
	}
	table := tabwriter.NewWriter(g.Env.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "LOCATION\tBLOBS\tMISSING\tSTALE\tCORRUPT\tREPAIRED\tSTATUS")
	for _, l := range report.Locations {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%s\n", command.Printable(l.Location),
			l.Blobs, l.Missing, l.Stale, l.Corrupt, l.Repaired, command.Printable(l.Status()))
	}
	if err := table.Flush(); err != nil {
		return &command.OutputError{Err: err}
	}
	for _, name := range report.Damaged {
		if err := g.Env.Printf("DAMAGED: %s\n", command.Printable(name)); err != nil {
			return err
		}
	}
	for _, location := range report.Foreign {
		if err := g.Env.Printf("WARNING: %s has a different cluster header\n", command.Printable(location)); err != nil {
			return err
		}
	}
	return nil
}

func newReportResult(report *repair.Report) reportResult {
	result := reportResult{
		Objects: report.Objects, Deleted: report.Deleted,
		InUse: report.InUse, Unreferenced: report.Unreferenced,
		Locations: []locationResult{},
		// Lists, never null.
		Damaged:         append([]string{}, report.Damaged...),
		DifferentHeader: append([]string{}, report.Foreign...),
	}
	for _, l := range report.Locations {
		row := locationResult{
			Location: l.Location, Blobs: l.Blobs, Missing: l.Missing, Stale: l.Stale,
			Corrupt: l.Corrupt, Repaired: l.Repaired, Status: l.Status(),
		}
		for _, p := range l.Parts {
			row.Parts = append(row.Parts, newPartResult(p))
		}
		result.Locations = append(result.Locations, row)
	}
	return result
}

func newPartResult(p blob.PartHealth) partResult {
	result := partResult{Part: p.Part, Missing: p.Missing, Stale: p.Stale, Corrupt: p.Corrupt, Repaired: p.Repaired}
	if p.Err != nil {
		result.Error = p.Err.Error()
	}
	return result
}
