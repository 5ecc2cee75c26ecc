// Package session opens the cluster for pcctl's commands: its storage locations, its
// keys, and its object store.
package session

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

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

// Session is one run of pcctl.
type Session struct {
	// Env is the process around it.
	Env command.Env
	// Secrets are those that the environment held.
	Secrets prompt.Secrets
}

// Locations opens the storage locations of --repo, or of the environment.
func (s *Session) Locations(cmd *cli.Command) (*quorum.Set, []blob.Spec, error) {
	source, list := "--repo", cmd.String("repo")
	if list == "" {
		source, list = envRepo, s.Env.Getenv(envRepo)
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
	locations, err := open.Options{Getenv: s.Env.Getenv}.All(specs)
	if err != nil {
		return nil, nil, err
	}
	set, err := quorum.New(locations, n)
	return set, specs, err
}

// Stalling says what is to be done about locations that stall.
type Stalling int

const (
	// WaitForAll is for commands that compare locations, or change all.
	WaitForAll Stalling = iota
	// Hedge is for those that can do without some.
	Hedge
)

// Unlock opens the cluster at the locations of --repo, and renews this machine's
// admin certificate if that is due. The caller leaves the cluster.
func (s *Session) Unlock(ctx context.Context, cmd *cli.Command, stalling Stalling) (*repository.Repository, []blob.Spec, error) {
	repo, secret, specs, err := s.UnlockWith(ctx, cmd, stalling)
	clear(secret.Passphrase)
	return repo, specs, err
}

// UnlockWith is Unlock that also returns the secret, without its recovery key.
// The caller clears the passphrase.
func (s *Session) UnlockWith(ctx context.Context, cmd *cli.Command, stalling Stalling) (*repository.Repository, repository.Secret, []blob.Spec, error) {
	repo, secret, specs, err := s.open(ctx, cmd, stalling)
	if err == nil {
		s.renew(ctx, repo)
	}
	return repo, secret, specs, err
}

// UnlockToCertify is Unlock for a command that issues an admin certificate: it renews
// none.
func (s *Session) UnlockToCertify(ctx context.Context, cmd *cli.Command) (*repository.Repository, error) {
	repo, secret, _, err := s.open(ctx, cmd, Hedge)
	clear(secret.Passphrase)
	return repo, err
}

// open opens the cluster.
func (s *Session) open(ctx context.Context, cmd *cli.Command, stalling Stalling) (repo *repository.Repository, secret repository.Secret, specs []blob.Spec, err error) {
	set, specs, err := s.Locations(cmd)
	if err != nil {
		return nil, repository.Secret{}, nil, err
	}
	defer func() {
		if err != nil {
			s.Finish(ctx, set)
		}
	}()
	if stalling == Hedge {
		set.Hedge()
	}
	// Before the passphrase is asked for: without a header it is no use.
	headers, err := repository.Read(ctx, set)
	if err != nil {
		return nil, repository.Secret{}, nil, err
	}
	secret, err = s.secret(ctx)
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
	if err := errors.Join(ctx.Err(), s.openCatalog(repo)); err != nil {
		repo.Root.Wipe()
		clear(secret.Passphrase)
		return nil, repository.Secret{}, nil, err
	}
	return repo, secret, specs, nil
}

// openCatalog opens what this machine knows of the cluster's manifests, if it may
// keep anything.
func (s *Session) openCatalog(repo *repository.Repository) (err error) {
	if s.Env.ConfigDir == "" {
		return nil
	}
	repo.Catalog, err = catalog.New(filepath.Join(s.Env.ConfigDir, "catalog", repo.Cluster.String()), repo.Root)
	return err
}

// secret returns the recovery key that the environment holds, or else the
// passphrase. The caller clears it.
func (s *Session) secret(ctx context.Context) (repository.Secret, error) {
	if s.Secrets.RecoveryKey == nil {
		passphrase, err := prompt.Passphrase(ctx, s.Env.Terminal, s.Secrets)
		return repository.Secret{Passphrase: passphrase}, err
	}
	key, err := keys.ParseRecoveryKey(string(s.Secrets.RecoveryKey))
	if err != nil {
		return repository.Secret{}, fmt.Errorf("%s: %w", prompt.EnvRecoveryKey, err)
	}
	return repository.Secret{Recovery: &key}, nil
}

// Finish waits for what locations do behind the calls that began it, which doesn't
// make a command fail: what it came for is done.
func (s *Session) Finish(ctx context.Context, set *quorum.Set) {
	for _, failure := range set.Close(ctx) {
		if ctx.Err() == nil {
			s.Warn("%s: %v", failure.Location, failure.Err)
		}
	}
}

// Leave ends the work with an unlocked cluster and wipes its root key.
func (s *Session) Leave(ctx context.Context, repo *repository.Repository) {
	repo.Root.Wipe()
	s.Finish(ctx, repo.Set)
}

// Objects opens the cluster's object store. Its warnings are printed; the caller
// leaves it.
func (s *Session) Objects(ctx context.Context, cmd *cli.Command, bar *progress.Bar) (*Objects, error) {
	repo, specs, err := s.Unlock(ctx, cmd, Hedge)
	if err != nil {
		return nil, err
	}
	if err := repo.Mixed(); err != nil {
		s.Leave(ctx, repo)
		return nil, err
	}
	opened, err := s.store(repo, bar)
	if err != nil {
		s.Leave(ctx, repo)
		return nil, err
	}
	return &Objects{Store: opened, Repository: repo, Specs: specs}, nil
}

// store opens the object store of a cluster.
func (s *Session) store(repo *repository.Repository, bar *progress.Bar) (*store.Store, error) {
	return store.New(repo.Set, repo.Root, store.Options{
		Now:     s.Env.Now,
		Random:  s.Env.Rand,
		Catalog: repo.Catalog,
		Guard:   repo.Guard,
		Warn:    func(line string) { bar.Print(func() { s.Warn("%s", line) }) },
	})
}

// Objects is an open store.
type Objects struct {
	*store.Store
	// Repository is what it is opened at, with the root key.
	Repository *repository.Repository
	// Specs are the locations as they were given.
	Specs []blob.Spec
}

// WarnMissed names the locations that missed a write which succeeded, as enough
// others took it.
func (s *Session) WarnMissed(o *Objects) {
	for _, missed := range o.Repository.Set.Missed() {
		s.Warn("%s missed what was written: %v; run 'pcctl repair' once it is back", missed.Location, missed.Err)
	}
}

// WarnCorrupt names the locations that had corrupt copies of what was read from
// others.
func (s *Session) WarnCorrupt(o *Objects, bar *progress.Bar) {
	for _, location := range o.Repository.Set.Corrupt() {
		bar.Print(func() {
			s.Warn("%s has corrupt copies of what was read; run 'pcctl repair --verify'", location)
		})
	}
}

// Warn prints a line that doesn't make the command fail.
func (s *Session) Warn(format string, args ...any) {
	fmt.Fprintf(s.Env.Stderr, "warning: %s\n", command.Line(fmt.Sprintf(format, args...)))
}

// Bar returns a progress bar for the command.
func (s *Session) Bar(work string, unit progress.Unit) *progress.Bar {
	return progress.New(s.Env.Stderr, s.Env.ShowProgress, work, unit)
}
