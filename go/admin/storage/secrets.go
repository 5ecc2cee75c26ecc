package storage

import (
	"context"
	"crypto/subtle"
	"errors"

	"github.com/urfave/cli/v3"

	"powercloud.unidatum.com/go/admin/command"
	"powercloud.unidatum.com/go/admin/prompt"
	"powercloud.unidatum.com/go/admin/session"
	"powercloud.unidatum.com/go/keys"
	"powercloud.unidatum.com/go/store/repository"
)

func (g *group) passphraseCommand() *cli.Command {
	return &cli.Command{
		Name:      "passphrase",
		Usage:     "Change the passphrase",
		UsageText: "pcctl --repo LOC[,LOC...] passphrase [--json]",
		Description: `Asks for the passphrase, then for a new one twice, and replaces the old one in
the key header at every location. Recovery keys stay valid, and the data is not
touched. With POWERCLOUD_RECOVERY_KEY set, the old passphrase isn't needed.

Refuses if any location can't be reached: the old passphrase would still open
the header there. If a location fails during the change, the new passphrase is
in force all the same; run 'pcctl repair' once the location is back.

Who has the old passphrase and an old copy of the key header still has the keys.
After a leak the keys themselves must be replaced, which this doesn't do.

POWERCLOUD_PASSPHRASE and POWERCLOUD_NEW_PASSPHRASE answer instead of the
terminal.

With --json: {"cluster": HEX}`,
		Flags:  []cli.Flag{command.JSONFlag()},
		Action: action(0, 0, g.passphrase),
	}
}

func (g *group) passphrase(ctx context.Context, cmd *cli.Command, _ []string) error {
	repo, old, err := g.unlockForChange(ctx, cmd)
	if err != nil {
		return err
	}
	defer g.Leave(ctx, repo)
	defer clear(old)
	passphrase, err := prompt.ChangedPassphrase(ctx, g.Env.Terminal, g.Secrets, func(passphrase []byte) error {
		if subtle.ConstantTimeCompare(passphrase, old) == 1 {
			return errors.New("the new passphrase is the old one")
		}
		return keys.CheckPassphrase(passphrase)
	})
	if err != nil {
		return err
	}
	defer clear(passphrase)
	err = repo.ChangePassphrase(ctx, passphrase, g.Env.Rand)
	var partial *repository.PartialChangeError
	if err == nil || errors.As(err, &partial) {
		err = errors.Join(err, g.printChanged(cmd, repo.Cluster))
	}
	return err
}

func (g *group) printChanged(cmd *cli.Command, cluster keys.ClusterID) error {
	if cmd.Bool("json") {
		return command.WriteJSON(g.Env.Stdout, passphraseResult{cluster.String()})
	}
	return g.Env.Printf("changed the passphrase of cluster %s\n", cluster)
}

// passphraseResult is what passphrase --json prints.
type passphraseResult struct {
	Cluster string `json:"cluster"`
}

func (g *group) recoveryKeyCommand() *cli.Command {
	return &cli.Command{
		Name:      "recovery-key",
		Usage:     "Make spare recovery keys",
		UsageText: "pcctl --repo LOC[,LOC...] recovery-key add [--json]",
		Description: `Each recovery key opens the cluster without the passphrase. The first one is
made by init.`,
		Commands: []*cli.Command{{
			Name:      "add",
			Usage:     "Make a spare recovery key",
			UsageText: "pcctl --repo LOC[,LOC...] recovery-key add [--json]",
			Description: `Makes another recovery key, which opens the cluster like the first one, and
prints it. It is shown only once: write it down and keep it offline, in another
place than the first. The earlier ones stay valid. There can be seven.

Refuses if any location can't be reached.

With --json: {"cluster": HEX, "recovery_key": KEY}`,
			Flags:  []cli.Flag{command.JSONFlag()},
			Action: action(0, 0, g.recoveryKeyAdd),
		}},
		Action: func(context.Context, *cli.Command) error {
			return command.Usagef("recovery-key needs a command; see 'pcctl help recovery-key'")
		},
	}
}

// recoveryKeyResult is what recovery-key add --json prints.
type recoveryKeyResult struct {
	Cluster     string `json:"cluster"`
	RecoveryKey string `json:"recovery_key"`
}

func (g *group) recoveryKeyAdd(ctx context.Context, cmd *cli.Command, _ []string) error {
	repo, secret, err := g.unlockForChange(ctx, cmd)
	if err != nil {
		return err
	}
	defer g.Leave(ctx, repo)
	clear(secret)
	recovery, err := repo.AddRecoveryKey(ctx, g.Env.Rand)
	var partial *repository.PartialChangeError
	if err != nil && !errors.As(err, &partial) {
		return err
	}
	// The key is valid even then.
	defer clear(recovery[:])
	return errors.Join(err, g.printRecoveryKey(cmd, repo.Cluster, recovery))
}

func (g *group) printRecoveryKey(cmd *cli.Command, cluster keys.ClusterID, recovery keys.RecoveryKey) error {
	if cmd.Bool("json") {
		return command.WriteJSON(g.Env.Stdout, recoveryKeyResult{cluster.String(), recovery.String()})
	}
	return g.Env.Printf(`Added a recovery key to cluster %s

RECOVERY KEY (write it down and store it offline — it is shown only once):

    %s

`, cluster, recovery)
}

// unlockForChange opens the cluster in order to change its key header. It also
// returns the passphrase that did, which the caller clears, or nil when a recovery
// key did.
func (g *group) unlockForChange(ctx context.Context, cmd *cli.Command) (*repository.Repository, []byte, error) {
	repo, secret, _, err := g.UnlockWith(ctx, cmd, session.WaitForAll)
	if err != nil {
		return nil, nil, err
	}
	if err := repo.Mixed(); err != nil {
		g.Leave(ctx, repo)
		clear(secret.Passphrase)
		return nil, nil, err
	}
	return repo, secret.Passphrase, nil
}
