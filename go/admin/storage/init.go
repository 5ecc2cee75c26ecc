package storage

import (
	"context"

	"github.com/urfave/cli/v3"

	"powercloud.unidatum.com/go/admin/command"
	"powercloud.unidatum.com/go/admin/prompt"
	"powercloud.unidatum.com/go/keys"
	"powercloud.unidatum.com/go/store/repository"
)

func (g *group) initCommand() *cli.Command {
	return &cli.Command{
		Name:      "init",
		Usage:     "Create a new cluster in the storage locations",
		UsageText: "pcctl --repo LOC[,LOC...] init [--json]",
		Description: `Asks for a new passphrase twice (at least 12 characters), creates the
cluster's keys, writes the key header to every location, and prints the
cluster's ID and its recovery key. The recovery key is shown only once: write
it down and keep it offline. It unlocks the cluster without the passphrase.

Refuses if any location holds a cluster, or can't be reached and so might.

With POWERCLOUD_PASSPHRASE set, that is the passphrase and nothing is asked.

With --json: {"cluster": HEX, "recovery_key": KEY, "locations": [LOC, ...]}`,
		Flags:  []cli.Flag{command.JSONFlag()},
		Action: action(0, 0, g.init),
	}
}

// initResult is what init --json prints.
type initResult struct {
	Cluster     string   `json:"cluster"`
	RecoveryKey string   `json:"recovery_key"`
	Locations   []string `json:"locations"`
}

func (g *group) init(ctx context.Context, cmd *cli.Command, _ []string) error {
	set, specs, err := g.Locations(cmd)
	if err != nil {
		return err
	}
	defer g.Finish(ctx, set)
	// Before the passphrase is thought up, and once more by Init.
	if err := repository.CheckNew(ctx, set); err != nil {
		return err
	}
	passphrase, err := prompt.NewClusterPassphrase(ctx, g.Env.Terminal, g.Secrets, keys.CheckPassphrase)
	if err != nil {
		return err
	}
	defer clear(passphrase)
	cluster, recovery, err := repository.Init(ctx, set, passphrase, g.Env.Rand)
	if err != nil {
		return err
	}
	defer clear(recovery[:])
	if cmd.Bool("json") {
		result := initResult{Cluster: cluster.String(), RecoveryKey: recovery.String()}
		for _, spec := range specs {
			result.Locations = append(result.Locations, spec.String())
		}
		return command.WriteJSON(g.Env.Stdout, result)
	}
	return g.Env.Printf(`Initialized cluster %s

RECOVERY KEY (write it down and store it offline — it is shown only once):

    %s

Without your passphrase or this recovery key, no one — including you — can read this data.
`, cluster, recovery)
}
