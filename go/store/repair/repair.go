// Package repair compares the locations of a repository and brings them up to
// date with each other.
//
// Everything is authenticated before it is copied, so a repair can't spread
// corruption; and what is damaged beyond repair is left as it is, so that an
// older copy isn't lost over a newer one that can't be read.
package repair

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"runtime"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/quorum"
	"powercloud.unidatum.com/go/store"
	"powercloud.unidatum.com/go/store/chunk"
	"powercloud.unidatum.com/go/store/lost"
	"powercloud.unidatum.com/go/store/repository"
	"powercloud.unidatum.com/go/store/survey"
)

// Options say how a repository is checked.
type Options struct {
	// Verify has every copy of every chunk downloaded and authenticated,
	// not only listed.
	Verify bool
	// Progress is told how far the work has come, counting manifests until
	// all are read and bytes of chunks from then on. It may be nil.
	Progress store.Progress
	// Random is a source of random bytes; crypto/rand.Reader when nil.
	Random io.Reader
}

// Check compares the locations and changes nothing. The report's Err says
// whether they agree; the error returned is another: the work could not be
// done.
func Check(ctx context.Context, repo *repository.Repository, options Options) (*Report, error) {
	w, err := begin(blob.ReadOnly(ctx), repo, options, blob.Healer.Inspect)
	if err != nil {
		return nil, err
	}
	return w.report, nil
}

// Repair first makes whole what the erasure-coded sets among the locations can put
// together by themselves. Then it compares the locations, and writes to each the
// newest manifests, the chunks in use and the key header that it lacks, or has in
// an old or corrupt form.
func Repair(ctx context.Context, repo *repository.Repository, options Options) (*Report, error) {
	w, err := begin(ctx, repo, options, blob.Healer.Heal)
	if err != nil {
		return nil, err
	}
	if err := w.repairChunks(ctx); err != nil {
		return nil, err
	}
	if err := w.findDamaged(ctx); err != nil {
		return nil, err
	}
	if err := w.recordLost(ctx); err != nil {
		return nil, err
	}
	if err := w.removeInvented(ctx); err != nil {
		return nil, err
	}
	if err := w.repairManifests(ctx); err != nil {
		return nil, err
	}
	w.repairHeaders(ctx)
	w.flush(ctx)
	return w.report, ctx.Err()
}

// remoteWorkers is how many chunks are read at once from locations that are far
// away, but for small ones. Each takes 4 MiB of memory.
const remoteWorkers = 16

// work is a check or a repair under way.
type work struct {
	repo     *repository.Repository
	surveyor *survey.Surveyor
	survey   *survey.Survey
	keeper   *lost.Keeper
	options  Options
	report   *Report
	// large and small bound how many chunks are worked on at once.
	large, small *buffers
	// health has what was found at the locations that are healers.
	health map[int]blob.Health
}

// begin surveys the repository and writes the report of what is wrong. Every
// manifest is read, whatever is known of it: bits rot without a location telling.
func begin(ctx context.Context, repo *repository.Repository, options Options, examine examination) (*work, error) {
	if options.Random == nil {
		options.Random = rand.Reader
	}
	surveyor, err := survey.New(repo.Set, repo.Root)
	if err != nil {
		return nil, err
	}
	for i, location := range repo.Locations {
		if location.State == repository.HeaderCurrent || location.State == repository.HeaderConflicting {
			surveyor.Members = surveyor.Members.With(i)
		}
	}
	keeper, err := lost.NewKeeper(repo.Set, repo.Root)
	if err != nil {
		return nil, err
	}
	if surveyor.Lost, err = keeper.Listed(ctx); err != nil {
		return nil, err
	}
	if surveyor.Marks, err = repo.Guard.All(ctx); err != nil {
		return nil, err
	}
	w := &work{repo: repo, surveyor: surveyor, keeper: keeper, options: options, health: map[int]blob.Health{}}
	if p := options.Progress; p != nil {
		w.surveyor.Expect, w.surveyor.Done = p.Expect, p.Done
	}
	workers := min(runtime.GOMAXPROCS(0)+1, 8)
	if repo.Set.Concurrency() > workers {
		workers = remoteWorkers
	}
	w.large = newBuffers(workers, chunk.MaxBlob)
	w.small = newBuffers(max(workers, min(repo.Set.Concurrency()*len(repo.Locations), smallAtOnce)), smallBlob)
	if err := w.examine(ctx, examine); err != nil {
		return nil, err
	}
	if w.survey, err = w.surveyor.Take(ctx); err != nil {
		return nil, err
	}
	if options.Verify {
		if err := w.verify(ctx); err != nil {
			return nil, err
		}
	}
	w.describe()
	return w, w.findDamaged(ctx)
}

// describe fills the report from the survey.
func (w *work) describe() {
	s := w.survey
	w.report = &Report{
		Objects: s.Objects, Deleted: s.Deleted, InUse: s.InUse.Len(), Unreferenced: s.Unreferenced.Len(),
		Conflict: w.repo.Conflict(), Rollback: w.surveyor.Marks.Err(),
	}
	for i, location := range w.repo.Locations {
		row := LocationReport{Location: location.String(), Err: s.Failed[i]}
		row.Foreign = location.State == repository.HeaderForeign
		row.Conflicting = location.State == repository.HeaderConflicting
		if row.Foreign || row.Conflicting {
			w.report.Foreign = append(w.report.Foreign, row.Location)
		}
		if row.Err == nil {
			w.describeLocation(i, location.State, &row)
			w.describeHealth(i, &row)
		}
		w.report.Locations = append(w.report.Locations, row)
	}
	var unread []quorum.Failure
	for i, err := range s.Failed {
		if err != nil {
			unread = append(unread, quorum.Failure{Location: w.repo.Locations[i], Err: err})
		}
	}
	w.report.Doubt = w.repo.Set.Doubt(unread)
}

// describeLocation fills the row of a location that was surveyed.
func (w *work) describeLocation(i int, header repository.HeaderState, row *LocationReport) {
	counts := w.survey.Manifests[i]
	row.Blobs, row.Missing, row.Stale, row.Corrupt = counts.Present, counts.Missing, counts.Stale, counts.Corrupt
	row.Newer = counts.Newer
	for _, c := range w.survey.InUse.All() {
		switch {
		case c.Present.Has(i):
			row.Blobs++
		case c.Corrupt.Has(i):
			row.Blobs++
			row.Corrupt++
		default:
			row.Missing++
		}
	}
	switch header {
	case repository.HeaderCurrent, repository.HeaderConflicting:
		row.Blobs++
	case repository.HeaderMissing:
		row.Missing++
	case repository.HeaderStale:
		row.Blobs++
		row.Stale++
	case repository.HeaderDamaged:
		row.Blobs++
		row.Corrupt++
	}
}

// findDamaged names the objects that can't be read whole.
func (w *work) findDamaged(ctx context.Context) error {
	damaged, err := w.surveyor.Users(ctx, w.survey, w.lostChunks())
	if err != nil {
		return err
	}
	for _, name := range w.survey.Unreadable {
		damaged = append(damaged, fmt.Sprintf("%s (the object's name can't be read)", name))
	}
	w.report.Damaged = damaged
	return nil
}

// reachable returns the locations that have not failed.
func (w *work) reachable() survey.Locations {
	var set survey.Locations
	for i, row := range w.survey.Failed {
		if row == nil {
			set = set.With(i)
		}
	}
	return set
}
