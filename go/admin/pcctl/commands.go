package pcctl

import (
	"context"
	"slices"

	"github.com/urfave/cli/v3"

	"powercloud.unidatum.com/go/admin/access"
	"powercloud.unidatum.com/go/admin/command"
	"powercloud.unidatum.com/go/admin/nodes"
	"powercloud.unidatum.com/go/admin/prompt"
	"powercloud.unidatum.com/go/admin/session"
	"powercloud.unidatum.com/go/admin/storage"
)

// commands returns pcctl's commands.
func commands(env Env, secrets prompt.Secrets) []*cli.Command {
	cluster := &session.Session{Env: env, Secrets: secrets}
	return slices.Concat(storage.Commands(cluster), access.Commands(cluster), nodes.Commands(cluster),
		[]*cli.Command{versionCommand(env), completionCommand(env), helpCommand()})
}

func versionCommand(env Env) *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "Print the version of pcctl",
		Description: `Prints the release that pcctl was built as, or "dev" for a build from source.

With --json: {"version": "..."}`,
		Flags: []cli.Flag{command.JSONFlag()},
		Action: func(_ context.Context, cmd *cli.Command) error {
			if _, err := command.Args(cmd, 0, 0); err != nil {
				return err
			}
			if cmd.Bool("json") {
				return command.WriteJSON(env.Stdout, struct {
					Version string `json:"version"`
				}{Version})
			}
			return env.Printf("%s\n", Version)
		},
	}
}

func helpCommand() *cli.Command {
	return &cli.Command{
		Name:      "help",
		Usage:     "Explain a command",
		ArgsUsage: "[COMMAND]",
		Description: `Without COMMAND, lists the commands and global options. With it, shows the
command's arguments and flags and what it prints.`,
		Action: func(ctx context.Context, cmd *cli.Command) error {
			parent := cmd.Root()
			path := cmd.Args().Slice()
			if len(path) == 0 {
				return cli.ShowRootCommandHelp(parent)
			}
			for i, name := range path {
				child := parent.Command(name)
				if child == nil {
					return unknownCommand(name)
				}
				if i == len(path)-1 {
					return cli.ShowCommandHelp(ctx, parent, name)
				}
				parent = child
			}
			return nil
		},
	}
}
