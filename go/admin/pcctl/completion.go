package pcctl

import (
	"context"
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"powercloud.unidatum.com/go/admin/command"
)

// completionScripts ask pcctl itself what may come next. They differ from
// cli's own in that they never evaluate the words on the command line.
//
//go:embed completion
var completionScripts embed.FS

// completionCommand returns the command that prints a shell's script.
func completionCommand(env Env) *cli.Command {
	shells := []struct{ name, alias, file string }{
		{"bash", "", "pcctl.bash"},
		{"zsh", "", "pcctl.zsh"},
		{"fish", "", "pcctl.fish"},
		{"powershell", "pwsh", "pcctl.ps1"},
	}
	cmd := &cli.Command{
		Name:      "completion",
		Usage:     "Print a shell's completion script",
		ArgsUsage: "SHELL",
		UsageText: "pcctl completion bash|zsh|fish|powershell",
		Description: `Prints a script that makes the shell complete pcctl's commands and flags:

  source <(pcctl completion bash)                        # in ~/.bashrc
  source <(pcctl completion zsh)                         # in ~/.zshrc
  pcctl completion fish > ~/.config/fish/completions/pcctl.fish
  pcctl completion powershell | Out-String | Invoke-Expression   # in $PROFILE`,
		Action: func(context.Context, *cli.Command) error {
			return command.Usagef("completion: name a shell: bash, zsh, fish or powershell")
		},
	}
	for _, shell := range shells {
		child := &cli.Command{
			Name:  shell.name,
			Usage: "Print the completion script for " + shell.name,
			Action: func(_ context.Context, cmd *cli.Command) error {
				if _, err := command.Args(cmd, 0, 0); err != nil {
					return err
				}
				script, err := completionScripts.ReadFile("completion/" + shell.file)
				if err != nil {
					return err
				}
				return env.Printf("%s", script)
			},
		}
		if shell.alias != "" {
			child.Aliases = []string{shell.alias}
		}
		cmd.Commands = append(cmd.Commands, child)
	}
	return cmd
}

// complete returns the function that answers a shell: a line for each flag or
// command that may come next, with a tab before its description. No answer
// makes the shell offer file names.
func complete(env Env) cli.ShellCompleteFunc {
	return func(_ context.Context, cmd *cli.Command) {
		args := cmd.Args().Slice()
		last := ""
		if len(args) > 0 {
			last = args[len(args)-1]
		}
		switch {
		case len(args) == 1 && strings.HasPrefix(last, "-"):
			for _, flag := range cmd.VisibleFlags() {
				completeFlag(env, flag, last)
			}
		case len(args) == 0:
			children := cmd.Commands
			if cmd.Name == "help" {
				children = cmd.Root().Commands
			}
			for _, child := range children {
				if !child.Hidden {
					fmt.Fprintf(env.Stdout, "%s\t%s\n", child.Name, child.Usage)
				}
			}
		}
	}
}

// completeFlag offers a flag whose name begins with what was typed. A flag
// that was typed whole waits for its value, for which there is no suggestion.
func completeFlag(env Env, flag cli.Flag, typed string) {
	typed = strings.TrimLeft(typed, "-")
	if slices.Contains(flag.Names(), typed) {
		return
	}
	name := flag.Names()[0]
	if !strings.HasPrefix(name, typed) {
		return
	}
	usage := ""
	if documented, ok := flag.(cli.DocGenerationFlag); ok {
		usage = strings.ReplaceAll(documented.GetUsage(), "`", "")
	}
	fmt.Fprintf(env.Stdout, "--%s\t%s\n", name, usage)
}
