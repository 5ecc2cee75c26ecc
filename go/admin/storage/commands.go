// Package storage holds pcctl's commands on the cluster's encrypted store:
// init, put, get, ls, rm, check, repair and gc.
package storage

import (
	"github.com/urfave/cli/v3"

	"powercloud.unidatum.com/go/admin/command"
	"powercloud.unidatum.com/go/admin/prompt"
)

// Commands returns the commands.
func Commands(env command.Env, secrets prompt.Secrets) []*cli.Command {
	return nil
}
