package nodes

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"powercloud.unidatum.com/go/admin/command"
	"powercloud.unidatum.com/go/api/message"
)

// lastWeek is how long before its certificate expires a node needs attention.
const lastWeek = 7 * day

// Answer is what a node said about itself, or why it didn't.
type Answer struct {
	// Name is the node's name on this machine.
	Name string
	// Status is what it said; not used if there is an error.
	Status message.Status
	// Err is why the node can't be reached, or the error that it answered with.
	Err error
}

// state is how the node is, in a word.
func (a Answer) state() string {
	if a.Err != nil {
		return "unreachable"
	}
	return "ok"
}

// Problems returns what about a node needs attention, a line each.
func (a Answer) Problems(now time.Time) []string {
	if a.Err != nil {
		return []string{fmt.Sprintf("unreachable (%s)", command.Line(a.Err.Error()))}
	}
	var problems []string
	if mesh := a.Status.Mesh; mesh.Reached < mesh.Peers {
		problems = append(problems, fmt.Sprintf("reaches %d of %d mesh peers", mesh.Reached, mesh.Peers))
	}
	switch left := a.Status.CertificateExpires.Sub(now); {
	case left <= 0:
		problems = append(problems, "certificate has expired")
	case left < lastWeek:
		problems = append(problems, fmt.Sprintf("certificate expires in %d days", left/day))
	}
	if inRAM(a.Status.State) {
		problems = append(problems, "state is in RAM, lost at reboot")
	}
	return problems
}

// cells are the node's line of the table.
func (a Answer) cells(now time.Time) []string {
	if a.Err != nil {
		return []string{a.Name, a.state(), "-", "-", "-", "-", "-", "-", "-", "-", "-"}
	}
	s := a.Status
	locations := "-"
	if s.Locations != 0 {
		locations = fmt.Sprintf("%d loc", s.Locations)
	}
	expiry := "expired"
	if left := s.CertificateExpires.Sub(now); left > 0 {
		expiry = fmt.Sprintf("%dd", left/day)
	}
	return []string{
		a.Name, a.state(), s.Architecture, s.Version, uptime(s.Uptime),
		fmt.Sprintf("%.0f%% of %d", min(max(s.CPU.Busy, 0), 100), s.CPU.Count),
		fmt.Sprintf("%d/%d MiB", s.Memory.Used, s.Memory.Total),
		fmt.Sprintf("%d/%d peers", s.Mesh.Reached, s.Mesh.Peers),
		fmt.Sprintf("%d/%d", s.Apps.Running, s.Apps.Deployed),
		locations, expiry,
	}
}

// WriteStatus writes for people what nodes said: a table, and what needs attention.
func WriteStatus(w io.Writer, answers []Answer, now time.Time) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row(table, "NODE", "STATE", "ARCH", "VERSION", "UPTIME", "CPU", "MEMORY", "MESH", "APPS", "STORAGE", "CERT")
	var attention strings.Builder
	for _, a := range answers {
		row(table, a.cells(now)...)
		for _, problem := range a.Problems(now) {
			fmt.Fprintf(&attention, "  %s: %s\n", command.Line(a.Name), problem)
		}
	}
	end := "all nodes healthy\n"
	if attention.Len() > 0 {
		end = "needs attention:\n" + attention.String()
	}
	if err := table.Flush(); err != nil {
		return &command.OutputError{Err: err}
	}
	if _, err := io.WriteString(w, end); err != nil {
		return &command.OutputError{Err: err}
	}
	return nil
}

// statusResult is a node's line in JSON.
type statusResult struct {
	Node      string          `json:"node"`
	State     string          `json:"state"`
	Error     string          `json:"error,omitempty"`
	Status    *message.Status `json:"status,omitempty"`
	Attention []string        `json:"needs_attention"`
}

// WriteStatusJSON writes what nodes said, a line of JSON for each: "node" is the
// node's name, "state" "ok" or "unreachable" with an "error", "status" what the node
// said, and "needs_attention" a list of problems.
func WriteStatusJSON(w io.Writer, answers []Answer, now time.Time) error {
	for _, a := range answers {
		result := statusResult{Node: a.Name, State: a.state(), Attention: a.Problems(now)}
		if result.Attention == nil {
			result.Attention = []string{}
		}
		if a.Err != nil {
			result.Error = a.Err.Error()
		} else {
			result.Status = &a.Status
		}
		if err := command.WriteJSON(w, result); err != nil {
			return err
		}
	}
	return nil
}
