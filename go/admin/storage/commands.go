// Package storage holds pcctl's commands on the cluster's encrypted store:
// init, put, get, ls, rm, check, repair and gc, passphrase and recovery-key.
package storage

import (
	"context"

	"github.com/urfave/cli/v3"

	"powercloud.unidatum.com/go/admin/command"
	"powercloud.unidatum.com/go/admin/session"
)

// group is the commands of one run of pcctl.
type group struct {
	*session.Session
}

// Commands returns the commands.
func Commands(cluster *session.Session) []*cli.Command {
	g := &group{cluster}
	return []*cli.Command{
		g.initCommand(),
		g.putCommand(),
		g.getCommand(),
		g.lsCommand(),
		g.rmCommand(),
		g.checkCommand(),
		g.repairCommand(),
		g.gcCommand(),
		g.passphraseCommand(),
		g.recoveryKeyCommand(),
	}
}

// action makes a cli action out of a command that takes between least and most
// arguments; most is negative where there is no limit.
func action(least, most int, run func(ctx context.Context, cmd *cli.Command, args []string) error) cli.ActionFunc {
	return func(ctx context.Context, cmd *cli.Command) error {
		args, err := command.Args(cmd, least, most)
		if err != nil {
			return err
		}
		return run(ctx, cmd, args)
	}
}
