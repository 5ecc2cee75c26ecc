package storage

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/urfave/cli/v3"

	"powercloud.unidatum.com/go/admin/command"
	"powercloud.unidatum.com/go/admin/progress"
	"powercloud.unidatum.com/go/admin/prompt"
	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/open"
	"powercloud.unidatum.com/go/blob/quorum"
	"powercloud.unidatum.com/go/keys"
	"powercloud.unidatum.com/go/store"
	"powercloud.unidatum.com/go/store/catalog"
	"powercloud.unidatum.com/go/store/repository"
)

// envRepo is the environment variable that stands in for --repo.
const envRepo = "POWERCLOUD_REPO"

// locations opens the storage locations of --repo, or of the environment.
func (g *group) locations(cmd *cli.Command) (*quorum.Set, []blob.Spec, error) {
	source, list := "--repo", cmd.String("repo")
	if list == "" {
		source, list = envRepo, g.env.Getenv(envRepo)
	}
	if list == "" {
		return nil, nil, command.Usagef("%s needs the cluster's storage locations: give --repo LOC[,LOC...] before the command, or set %s",
			cmd.Name, envRepo)
	}
	specs, err := blob.ParseList(list)
	if err != nil {
		return nil, nil, command.Usagef("%s: %v", source, err)
	}
	n := cmd.Int("quorum")
	if cmd.IsSet("quorum") && (n < 1 || n > len(specs)) {
		return nil, nil, command.Usagef("--quorum %d is outside 1 to %d, the number of locations", n, len(specs))
	}
	locations, err := open.Options{Getenv: g.env.Getenv}.All(specs)
	if err != nil {
		return nil, nil, err
	}
	set, err := quorum.New(locations, n)
	return set, specs, err
}

// stalling says what is to be done about locations that stall.
type stalling int

const (
	// waitForAll is for commands that compare locations, or change all.
	waitForAll stalling = iota
	// hedge is for those that can do without some.
	hedge
)

// unlock opens the cluster at the locations of --repo. The caller wipes the
// root key.
func (g *group) unlock(ctx context.Context, cmd *cli.Command, stalling stalling) (*repository.Repository, []blob.Spec, error) {
	repo, secret, specs, err := g.unlockWith(ctx, cmd, stalling)
	clear(secret.Passphrase)
	return repo, specs, err
}

// unlockWith is unlock that also returns the secret, without its recovery key.
// The caller clears the passphrase.
func (g *group) unlockWith(ctx context.Context, cmd *cli.Command, stalling stalling) (repo *repository.Repository, secret repository.Secret, specs []blob.Spec, err error) {
	set, specs, err := g.locations(cmd)
	if err != nil {
		return nil, repository.Secret{}, nil, err
	}
	defer func() {
		if err != nil {
			g.finish(ctx, set)
		}
	}()
	if stalling == hedge {
		set.Hedge()
	}
	// Before the passphrase is asked for: without a header it is no use.
	headers, err := repository.Read(ctx, set)
	if err != nil {
		return nil, repository.Secret{}, nil, err
	}
	secret, err = g.secret(ctx)
	if err != nil {
		return nil, repository.Secret{}, nil, err
	}
	repo, err = headers.Unlock(secret)
	if secret.Recovery != nil {
		clear(secret.Recovery[:])
		secret.Recovery = nil
	}
	if err != nil {
		clear(secret.Passphrase)
		return nil, repository.Secret{}, nil, err
	}
	if err := errors.Join(ctx.Err(), g.openCatalog(repo)); err != nil {
		repo.Root.Wipe()
		clear(secret.Passphrase)
		return nil, repository.Secret{}, nil, err
	}
	return repo, secret, specs, nil
}

// openCatalog opens what this machine knows of the cluster's manifests, if it may
// keep anything.
func (g *group) openCatalog(repo *repository.Repository) (err error) {
	if g.env.ConfigDir == "" {
		return nil
	}
	repo.Catalog, err = catalog.New(filepath.Join(g.env.ConfigDir, "catalog", repo.Cluster.String()), repo.Root)
	return err
}

// secret returns the recovery key that the environment holds, or else the
// passphrase. The caller clears it.
func (g *group) secret(ctx context.Context) (repository.Secret, error) {
	if g.secrets.RecoveryKey == nil {
		passphrase, err := prompt.Passphrase(ctx, g.env.Terminal, g.secrets)
		return repository.Secret{Passphrase: passphrase}, err
	}
	key, err := keys.ParseRecoveryKey(string(g.secrets.RecoveryKey))
	if err != nil {
		return repository.Secret{}, fmt.Errorf("%s: %w", prompt.EnvRecoveryKey, err)
	}
	return repository.Secret{Recovery: &key}, nil
}

// finish waits for what locations do behind the calls that began it, which doesn't
// make a command fail: what it came for is done.
func (g *group) finish(ctx context.Context, set *quorum.Set) {
	for _, failure := range set.Close(ctx) {
		if ctx.Err() == nil {
			g.warn("%s: %v", failure.Location, failure.Err)
		}
	}
}

// leave ends the work with an unlocked cluster and wipes its root key.
func (g *group) leave(ctx context.Context, repo *repository.Repository) {
	repo.Root.Wipe()
	g.finish(ctx, repo.Set)
}

// objects opens the cluster's object store. Its warnings are printed; the caller
// leaves it.
func (g *group) objects(ctx context.Context, cmd *cli.Command, bar *progress.Bar) (*objects, error) {
	repo, specs, err := g.unlock(ctx, cmd, hedge)
	if err != nil {
		return nil, err
	}
	if err := repo.Mixed(); err != nil {
		g.leave(ctx, repo)
		return nil, err
	}
	s, err := store.New(repo.Set, repo.Root, store.Options{
		Now:     g.env.Now,
		Random:  g.env.Rand,
		Catalog: repo.Catalog,
		Guard:   repo.Guard,
		Warn:    func(line string) { bar.Print(func() { g.warn("%s", line) }) },
	})
	if err != nil {
		g.leave(ctx, repo)
		return nil, err
	}
	return &objects{Store: s, repo: repo, specs: specs}, nil
}

// objects is an open store.
type objects struct {
	*store.Store
	repo  *repository.Repository
	specs []blob.Spec
}

// warnMissed names the locations that missed a write which succeeded, as enough
// others took it.
func (g *group) warnMissed(o *objects) {
	for _, missed := range o.repo.Set.Missed() {
		g.warn("%s missed what was written: %v; run 'pcctl repair' once it is back", missed.Location, missed.Err)
	}
}

// warnCorrupt names the locations that had corrupt copies of what was read from
// others.
func (g *group) warnCorrupt(o *objects, bar *progress.Bar) {
	for _, location := range o.repo.Set.Corrupt() {
		bar.Print(func() {
			g.warn("%s has corrupt copies of what was read; run 'pcctl repair --verify'", location)
		})
	}
}

// warn prints a line that doesn't make the command fail.
func (g *group) warn(format string, args ...any) {
	fmt.Fprintf(g.env.Stderr, "warning: %s\n", command.Line(fmt.Sprintf(format, args...)))
}

// bar returns a progress bar for the command.
func (g *group) bar(work string, unit progress.Unit) *progress.Bar {
	return progress.New(g.env.Stderr, g.env.ShowProgress, work, unit)
}

// failures counts what went wrong with parts of a command that went on with
// the others, and prints each. It may be used by several goroutines at once.
type failures struct {
	group *group
	bar   *progress.Bar

	mu    sync.Mutex
	count int
}

// add prints an error and counts it. Joined errors count one by one.
func (f *failures) add(err error) {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) && fmt.Sprint(err) == fmt.Sprint(errors.Join(joined.Unwrap()...)) {
		for _, part := range joined.Unwrap() {
			f.add(part)
		}
		return
	}
	f.mu.Lock()
	f.count++
	f.mu.Unlock()
	f.bar.Print(func() { fmt.Fprintf(f.group.env.Stderr, "pcctl: %s\n", command.Line(err.Error())) })
}
