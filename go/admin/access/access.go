// Package access holds pcctl's commands on who may manage the cluster: login.
package access

import (
	"context"
	"time"

	"github.com/urfave/cli/v3"

	"powercloud.unidatum.com/go/admin/command"
	"powercloud.unidatum.com/go/admin/configuration"
	"powercloud.unidatum.com/go/admin/session"
)

// group is the commands of one run of pcctl.
type group struct {
	*session.Session
}

// Commands returns the commands.
func Commands(cluster *session.Session) []*cli.Command {
	g := &group{cluster}
	return []*cli.Command{g.loginCommand()}
}

func (g *group) loginCommand() *cli.Command {
	return &cli.Command{
		Name:      "login",
		Usage:     "Issue an admin certificate for this machine",
		UsageText: "pcctl --repo LOC,... login [--json]",
		Description: `Issues an admin certificate, valid for 30 days, and writes it to the
configuration directory, with its private key (admin.crt, admin.key) and the
certificate of the cluster's authority (ca.crt). It is what nodes know an admin
by. What was there before is replaced.

A command that unlocks the cluster renews the certificate by itself once it has
a week or less left.

With --json: {"cluster": HEX, "directory": DIR, "expires": TIME}`,
		Flags:  []cli.Flag{command.JSONFlag()},
		Action: g.login,
	}
}

// loginResult is what login --json prints.
type loginResult struct {
	Cluster   string `json:"cluster"`
	Directory string `json:"directory"`
	// Expires is when the certificate does, in RFC 3339 and UTC.
	Expires string `json:"expires"`
}

func (g *group) login(ctx context.Context, cmd *cli.Command) error {
	if _, err := command.Args(cmd, 0, 0); err != nil {
		return err
	}
	// Before the passphrase is asked for.
	if g.Env.ConfigDir == "" {
		return configuration.ErrNone
	}
	repo, err := g.UnlockToCertify(ctx, cmd)
	if err != nil {
		return err
	}
	defer g.Leave(ctx, repo)
	if err := repo.Mixed(); err != nil {
		return err
	}
	expires, err := g.Certify(ctx, repo)
	if err != nil {
		return err
	}
	if cmd.Bool("json") {
		return command.WriteJSON(g.Env.Stdout, loginResult{repo.Cluster.String(), g.Env.ConfigDir, expires.Format(time.RFC3339)})
	}
	return g.Env.Printf("admin certificate for cluster %s written to %s (valid 30 days)\n",
		repo.Cluster, command.Printable(g.Env.ConfigDir))
}
