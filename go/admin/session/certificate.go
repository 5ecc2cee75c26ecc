package session

import (
	"context"
	"fmt"
	"time"

	"powercloud.unidatum.com/go/admin/configuration"
	"powercloud.unidatum.com/go/admin/credentials"
	"powercloud.unidatum.com/go/admin/progress"
	"powercloud.unidatum.com/go/cluster/registry"
	"powercloud.unidatum.com/go/pki"
	"powercloud.unidatum.com/go/store/repository"
)

// Directory returns pcctl's configuration directory.
func (s *Session) Directory() configuration.Directory {
	return configuration.Directory(s.Env.ConfigDir)
}

// Certify issues an admin certificate for this machine, in the place of any that it
// has, and returns when it expires.
func (s *Session) Certify(ctx context.Context, repo *repository.Repository) (expires time.Time, err error) {
	ca, err := pki.NewCA(repo.Root, repo.Cluster)
	if err != nil {
		return time.Time{}, err
	}
	defer ca.Wipe()
	issued := s.issueTime(ctx, repo)
	if err := credentials.Issue(s.Directory(), ca, issued, s.Env.Rand); err != nil {
		return time.Time{}, err
	}
	return issued.Add(pki.AdminLifetime), nil
}

// issueTime returns when a certificate is to be issued so that it isn't among those
// that were revoked. An admin must not be locked out by a registry that can't be
// read: then that is now.
func (s *Session) issueTime(ctx context.Context, repo *repository.Repository) time.Time {
	now := s.Env.Now().UTC().Truncate(time.Second)
	opened, err := s.store(repo, &progress.Bar{})
	var nodes *registry.Registry
	if err == nil {
		nodes, err = registry.Load(ctx, SystemObjects{opened}, repo.Cluster)
	}
	if err != nil {
		s.Warn("whether admin certificates were revoked could not be found out: %v", err)
		return now
	}
	return nodes.Revoked.IssueTime(now)
}

// renew renews this machine's admin certificate if it has so little time left that it
// is due, and says so. What keeps it from that doesn't make a command fail.
func (s *Session) renew(ctx context.Context, repo *repository.Repository) {
	renewed, err := s.renewDue(ctx, repo)
	switch {
	case err != nil:
		s.Warn("the admin certificate was not renewed: %v", err)
	case renewed:
		fmt.Fprintln(s.Env.Stderr, "admin certificate renewed (valid 30 days)")
	}
}

func (s *Session) renewDue(ctx context.Context, repo *repository.Repository) (bool, error) {
	if has, err := credentials.Exist(s.Directory()); err != nil || !has || repo.Mixed() != nil {
		return false, err
	}
	ca, err := pki.NewCA(repo.Root, repo.Cluster)
	if err != nil {
		return false, err
	}
	defer ca.Wipe()
	due, err := credentials.Due(s.Directory(), ca.Authority(), s.Env.Now())
	if err != nil || !due {
		return false, err
	}
	_, err = s.Certify(ctx, repo)
	return err == nil, err
}
