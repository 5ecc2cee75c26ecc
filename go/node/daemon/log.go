package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"

	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/api/route"
	"powercloud.unidatum.com/go/api/server"
	"powercloud.unidatum.com/go/node/lifecycle"
	"powercloud.unidatum.com/go/node/logs"
	"powercloud.unidatum.com/go/node/supervisor"
	"powercloud.unidatum.com/go/sys/pstore"
)

// logFolder is the folder of the node's log, in that of its state.
const logFolder = "log"

// keepLog answers for the node's log, and returns what keeps it.
func (c Config) keepLog(h *server.Handlers, m *lifecycle.Member) (supervisor.Component, error) {
	config := logs.Config{Folder: filepath.Join(m.Folder, logFolder), Log: c.Log, Lines: c.Lines}
	kept, err := c.newLog(&config)
	server.HandleStream(h, route.Logs(), func(ctx context.Context, _ server.Caller, asked *message.Logs, w io.Writer) error {
		if kept == nil {
			return message.Errorf("", "the node's log isn't kept: %v", err)
		}
		lines := json.NewEncoder(w)
		lines.SetEscapeHTML(false)
		err := kept.Read(ctx, logs.Options{Boot: logs.Boot(asked.Boot), Follow: asked.Follow}, func(r logs.Record) error {
			return lines.Encode(message.LogRecord{Time: r.Time, Uptime: r.Uptime, Level: r.Level.String(), Source: r.Source, Text: r.Text})
		})
		if errors.Is(err, logs.ErrNotOpen) || errors.Is(err, logs.ErrOptions) {
			return message.Errorf("", "%v", err)
		}
		return err
	})
	if err != nil {
		return supervisor.Component{}, err
	}
	return supervisor.Component{Name: "log", Run: kept.Run}, nil
}

// newLog makes the log. On a node all of it is in the kernel's; elsewhere that is
// somebody else's, and pcd gives the log its own lines.
func (c Config) newLog(config *logs.Config) (_ *logs.Log, err error) {
	if config.Boot, err = logs.ThisBoot(logs.BootID); err != nil {
		return nil, err
	}
	if c.Lines == nil {
		config.Panics = filepath.Join(c.RunFolder, pstore.KeptName)
		config.Kernel = logs.ThisKernel
	}
	return logs.New(*config)
}
