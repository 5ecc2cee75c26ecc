package command

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"
)

// UsageError is a command line that can't be run: pcctl prints it on one line
// and exits with status 2.
type UsageError struct {
	message string
}

// Usagef returns a UsageError with a formatted message.
func Usagef(format string, args ...any) *UsageError {
	return &UsageError{message: fmt.Sprintf(format, args...)}
}

// Error returns the message.
func (e *UsageError) Error() string { return e.message }

// Args returns a command's arguments, or a UsageError when there are fewer
// than least or, with most not negative, more than most.
func Args(cmd *cli.Command, least, most int) ([]string, error) {
	args := cmd.Args().Slice()
	name := strings.TrimPrefix(cmd.FullName(), cmd.Root().Name+" ")
	switch {
	case len(args) < least:
		return nil, Usagef("%[1]s: too few arguments; see 'pcctl help %[1]s'", name)
	case most >= 0 && len(args) > most:
		return nil, Usagef("%[1]s: too many arguments; see 'pcctl help %[1]s'", name)
	}
	return args, nil
}
