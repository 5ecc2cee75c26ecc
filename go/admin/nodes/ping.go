package nodes

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"powercloud.unidatum.com/go/admin/command"
	"powercloud.unidatum.com/go/api/message"
)

// writePinged shows what came of trying the network.
func writePinged(w io.Writer, pinged *message.Pinged) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	switch {
	case pinged.LookupError != "":
		fmt.Fprintf(table, "lookup\t%s\n", command.Line(pinged.LookupError))
	case pinged.Lookup > 0:
		fmt.Fprintf(table, "lookup\t%s\n", milliseconds(pinged.Lookup))
	}
	for _, a := range pinged.Addresses {
		for _, try := range a.Tries {
			outcome := "answers in " + milliseconds(try.Duration)
			if try.Error != "" {
				outcome = command.Line(try.Error)
			}
			fmt.Fprintf(table, "%s\t%s\n", command.Line(a.Address.String()), outcome)
		}
	}
	if pinged.Untried > 0 {
		fmt.Fprintf(table, "%s not tried\n", count(pinged.Untried, "more address"))
	}
	if err := table.Flush(); err != nil {
		return &command.OutputError{Err: err}
	}
	return nil
}

// milliseconds is to a tenth, and below one to a hundredth, as what is near needs it.
func milliseconds(d time.Duration) string {
	if d < time.Millisecond {
		return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}

// reached returns an error if nothing answered.
func reached(node, target string, pinged *message.Pinged) error {
	for _, a := range pinged.Addresses {
		for _, try := range a.Tries {
			if try.Error == "" {
				return nil
			}
		}
	}
	return fmt.Errorf("node %s doesn't reach %s", node, command.Printable(target))
}
