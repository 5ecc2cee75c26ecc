package pcctl

import (
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"powercloud.unidatum.com/go/admin/command"
)

// completionRequest is the argument with which a shell's completion script
// asks for suggestions. cli gives it this name.
const completionRequest = "--generate-shell-completion"

// arrange puts a command line into a form that cli reads as pcctl's manual
// says: every flag as --name=value, and "--" before the first argument of a
// command, so that whatever follows is an argument, byte for byte, even when it
// begins with '-'. (cli would look for flags behind the arguments, swallow a
// later "--", and trim spaces.) It refuses flags and commands that don't exist.
func arrange(root *cli.Command, args []string) ([]string, error) {
	if len(args) == 0 || args[len(args)-1] == completionRequest {
		return args, nil
	}
	arranged := []string{args[0]}
	cmd := root
	for i, flagsOver := 1, false; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--" && !flagsOver:
			flagsOver = true
		case strings.HasPrefix(arg, "-") && arg != "-" && !flagsOver:
			flag, used, err := arrangeFlag(cmd, root, args[i:])
			if err != nil {
				return nil, err
			}
			arranged = append(arranged, flag)
			i += used - 1
		case len(cmd.Commands) > 0:
			child := cmd.Command(arg)
			if child == nil {
				return nil, unknownCommand(arg)
			}
			arranged = append(arranged, arg)
			cmd, flagsOver = child, false
		default:
			arranged = append(arranged, "--")
			return append(arranged, args[i:]...), nil
		}
	}
	return arranged, nil
}

// arrangeFlag returns the flag that args begins with as --name=value, and how
// many of args it took.
func arrangeFlag(cmd, root *cli.Command, args []string) (flag string, used int, err error) {
	given := strings.TrimPrefix(strings.TrimPrefix(args[0], "-"), "-")
	name, value, hasValue := strings.Cut(given, "=")
	if name == "" || strings.HasPrefix(name, "-") {
		return "", 0, command.Usagef("%q is not a flag", args[0])
	}
	if name == "h" || name == "help" {
		return "--help", 1, nil
	}
	known := findFlag(cmd, name)
	if known == nil {
		return "", 0, unknownFlag(cmd, root, name)
	}
	if _, isBool := known.(*cli.BoolFlag); isBool {
		if !hasValue {
			return "--" + name, 1, nil
		}
		if _, err := strconv.ParseBool(value); err != nil {
			return "", 0, command.Usagef("--%s takes no value, or true or false, not %q", name, value)
		}
		return "--" + name + "=" + value, 1, nil
	}
	if hasValue {
		return "--" + name + "=" + value, 1, nil
	}
	if len(args) < 2 {
		return "", 0, command.Usagef("flag --%s needs a value", name)
	}
	return "--" + name + "=" + args[1], 2, nil
}

func findFlag(cmd *cli.Command, name string) cli.Flag {
	for _, flag := range cmd.Flags {
		if slices.Contains(flag.Names(), name) {
			return flag
		}
	}
	return nil
}

func unknownFlag(cmd, root *cli.Command, name string) error {
	if cmd != root && findFlag(root, name) != nil {
		return command.Usagef("--%s is a global option: put it before the command", name)
	}
	if cmd == root {
		return command.Usagef("unknown global option --%s; see 'pcctl help'", name)
	}
	return command.Usagef("%s: unknown flag --%s; see 'pcctl help %s'", cmd.Name, name, cmd.Name)
}

func unknownCommand(name string) error {
	return command.Usagef("unknown command %q; see 'pcctl help'", name)
}
