// Package pcctl is the command tree of the pcctl tool: global options, usage
// errors, exit statuses, help and shell completion. What the commands do is in
// the packages beside it.
package pcctl

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"

	"powercloud.unidatum.com/go/admin/command"
	"powercloud.unidatum.com/go/admin/prompt"
)

// Version is the release that the binary was built as. A release build sets it
// with the linker's -X flag; every other build leaves it at "dev".
var Version = "dev"

// Exit statuses.
const (
	statusOK      = 0
	statusFailure = 1
	statusUsage   = 2
)

// Env is what a run of pcctl gets from the process around it.
type Env = command.Env

// errNoCommand means that the command line names no command.
var errNoCommand = errors.New("no command")

// Run runs one command line and returns its exit status: 0, 1 for a failure, 2
// for a usage error. It keeps no state and may be called again and again.
// Cancelling ctx makes the command clean up and fail.
func Run(ctx context.Context, env Env) int {
	env = env.WithDefaults()
	secrets, err := prompt.TakeSecrets(env.Getenv, env.Unsetenv)
	if err == nil {
		defer secrets.Wipe()
		err = run(ctx, env, secrets)
	}
	var usage *command.UsageError
	switch {
	case err == nil:
		return statusOK
	case errors.Is(err, errNoCommand):
		return statusUsage
	case errors.As(err, &usage):
		report(env, err)
		return statusUsage
	case ctx.Err() != nil:
		// What failed after the interruption failed because of it.
		report(env, context.Cause(ctx))
		return statusFailure
	default:
		report(env, err)
		return statusFailure
	}
}

// report prints an error on one line.
func report(env Env, err error) {
	fmt.Fprintf(env.Stderr, "pcctl: %s\n", command.Line(err.Error()))
}

func run(ctx context.Context, env Env, secrets prompt.Secrets) error {
	root := newRoot(env, secrets)
	args, err := arrange(root, env.Args)
	if err != nil {
		return err
	}
	return root.Run(ctx, args)
}

// newRoot builds the command tree of one run.
func newRoot(env Env, secrets prompt.Secrets) *cli.Command {
	root := &cli.Command{
		Name:      "pcctl",
		Usage:     "Run a PowerCloud cluster",
		UsageText: "pcctl [GLOBAL OPTIONS] COMMAND [FLAGS] [ARGUMENTS]",
		Description: `Global options come before the command, and a command's flags before its
arguments. -flag and --flag are the same.`,
		Flags: []cli.Flag{
			&cli.StringFlag{
				Name:  "repo",
				Usage: "The cluster's storage locations, `LOC[,LOC...]` (or POWERCLOUD_REPO)",
				Local: true,
			},
			&cli.IntFlag{
				Name:        "quorum",
				Usage:       "How many locations, `N`, must accept a write",
				DefaultText: "majority",
				Local:       true,
			},
		},
		Commands:              commands(env, secrets),
		HideHelpCommand:       true, // 'pcctl get help' fetches the object "help"
		EnableShellCompletion: true, // a hidden command that it adds is behind ours of the same name
		Reader:                env.Stdin,
		Writer:                env.Stdout,
		ErrWriter:             env.Stderr,
		// Without a handler, cli ends the process by itself.
		ExitErrHandler: func(context.Context, *cli.Command, error) {},
		Action: func(_ context.Context, cmd *cli.Command) error {
			cmd.Writer = env.Stderr
			if err := cli.ShowRootCommandHelp(cmd); err != nil {
				return err
			}
			return errNoCommand
		},
	}
	// Walk's error is the callback's.
	_ = root.Walk(func(cmd *cli.Command) error {
		cmd.OnUsageError = func(_ context.Context, cmd *cli.Command, err error, _ bool) error {
			// What strconv thought of a value adds nothing to naming it.
			message, _, _ := strings.Cut(err.Error(), ": strconv.")
			return command.Usagef("%s", strings.Replace(message, "for flag -", "for flag --", 1))
		}
		cmd.ShellComplete = complete(env)
		return nil
	})
	return root
}
