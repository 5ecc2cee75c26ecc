package nodes

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/urfave/cli/v3"

	"powercloud.unidatum.com/go/admin/command"
	"powercloud.unidatum.com/go/api/client"
	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/api/route"
)

const (
	// maxRecord is the size in bytes that no record of a log exceeds as JSON.
	maxRecord = 128 << 10
	// maxLog is the size in bytes that no log exceeds that ends: nodes keep 16 MiB, and
	// JSON may take six bytes for one.
	maxLog = 128 << 20
	// maxSilence is how long a node may take for the next part of a log that ends.
	maxSilence = 30 * time.Second
)

func (g *group) logsCommand() *cli.Command {
	return &cli.Command{
		Name:      "logs",
		Usage:     "Show a node's log",
		UsageText: "pcctl node logs [--boot current|previous|panic] [--follow] [--json] NAME",
		Description: `Shows what a node's kernel and its services have logged, oldest first: since the
node was started, or, with --boot previous, in the boot before and what was
saved of a panic that ended it, or of a crash of pcd's. With --boot panic, the
kernel's last panics alone, whenever they were. With --follow it goes on until
it is interrupted. --boot and --follow may also come after NAME.

With --json, a line for each record.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "boot", Value: message.BootCurrent, Usage: "which `BOOT`: current, previous or panic"},
			&cli.BoolFlag{Name: "follow", Usage: "go on with what is logged from now on"},
			command.JSONFlag(),
		},
		Action: g.logs,
	}
}

// logsRequest reads the command line, whose flags may come behind the name.
func logsRequest(cmd *cli.Command) (name string, request *message.Logs, err error) {
	args := cmd.Args().Slice()
	if len(args) == 0 {
		_, err := command.Args(cmd, 1, 1)
		return "", nil, err
	}
	request = &message.Logs{Boot: cmd.String("boot"), Follow: cmd.Bool("follow")}
	behind := flag.NewFlagSet("logs", flag.ContinueOnError)
	behind.SetOutput(io.Discard)
	behind.StringVar(&request.Boot, "boot", request.Boot, "")
	behind.BoolVar(&request.Follow, "follow", request.Follow, "")
	if err := behind.Parse(args[1:]); err != nil {
		return "", nil, command.Usagef("logs: %v", err)
	}
	if behind.NArg() > 0 {
		return "", nil, command.Usagef("logs takes one node, and %q is one argument too many", behind.Arg(0))
	}
	switch request.Boot {
	case message.BootCurrent, message.BootPrevious, message.BootPanic:
	default:
		return "", nil, command.Usagef("--boot %q is not current, previous or panic", request.Boot)
	}
	if request.Follow && request.Boot != message.BootCurrent {
		return "", nil, command.Usagef("--follow goes on with the current boot; leave out --boot")
	}
	return args[0], request, nil
}

func (g *group) logs(ctx context.Context, cmd *cli.Command) error {
	name, request, err := logsRequest(cmd)
	if err != nil {
		return err
	}
	node, n, err := g.connect(name, false)
	if err != nil {
		return err
	}
	defer node.Close()
	show := g.showRecord
	if cmd.Bool("json") {
		show = func(r *message.LogRecord) error { return command.WriteJSON(g.Env.Stdout, r) }
	}
	return g.showLog(ctx, node, n.Name, request, show)
}

// showLog reads a node's log and shows each record of it.
func (g *group) showLog(ctx context.Context, node *client.Client, name string, request *message.Logs, show func(*message.LogRecord) error) error {
	silence := g.silence
	if request.Follow {
		// A node may have nothing to say for days.
		silence = 0
	}
	stream, err := client.Read(ctx, node, route.Logs(), request, silence)
	if err != nil {
		return explain(err, name)
	}
	defer stream.Close()
	bounded := &io.LimitedReader{R: stream, N: maxLog}
	if request.Follow {
		bounded.N = math.MaxInt64
	}
	lines := bufio.NewScanner(bounded)
	lines.Buffer(nil, maxRecord)
	empty := true
	for lines.Scan() && bounded.N > 0 {
		empty = false
		var r message.LogRecord
		if err := message.Decode(lines.Bytes(), &r, false); err != nil {
			if lines.Err() != nil {
				// It is the part of a record after which the log breaks off.
				break
			}
			return fmt.Errorf("node %s: a record of its log can't be read: %w", name, err)
		}
		if err := show(&r); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("node %s: its log breaks off: %w", name, err)
	}
	if bounded.N <= 0 {
		return fmt.Errorf("node %s: its log has more than %d MiB, which no log can have", name, maxLog>>20)
	}
	if errors.Is(ctx.Err(), context.Canceled) && request.Follow {
		return nil
	}
	if empty && ctx.Err() == nil {
		// Nothing at all could be taken for a failure.
		fmt.Fprintf(g.Env.Stderr, "node %s has %s\n", name, nothing(request.Boot))
	}
	return ctx.Err()
}

// nothing is what a node has whose log of a kind is empty.
func nothing(boot string) string {
	switch boot {
	case message.BootPrevious:
		return "no log of the boot before this"
	case message.BootPanic:
		return "no panic in its log"
	}
	return "an empty log"
}

// showRecord prints a record on a line, or on several if it has some. Nothing in it can
// drive the terminal.
func (g *group) showRecord(r *message.LogRecord) error {
	at := "-"
	switch {
	case !r.Time.IsZero():
		at = r.Time.In(g.Env.Zone).Format(time.DateTime)
	case r.Uptime > 0:
		at = fmt.Sprintf("+%.3f", r.Uptime.Seconds())
	}
	return g.Env.Printf("%s %s %s: %s\n", at, command.Line(r.Source), command.Line(r.Level), command.LogText(r.Text))
}
