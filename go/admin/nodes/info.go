package nodes

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"powercloud.unidatum.com/go/admin/command"
	"powercloud.unidatum.com/go/api/message"
)

const (
	// minute is how times are shown, in UTC.
	minute = "2006-01-02 15:04 UTC"
	// reminder is how long before a certificate expires its renewal is called for, and due.
	reminder = 30 * day
	day      = 24 * time.Hour
	// mebibyte is a MiB in bytes.
	mebibyte = 1 << 20
)

// WriteInfo writes a node's details for people: a line for each, and a table of its
// peers in the mesh.
func WriteInfo(w io.Writer, name string, info message.Info, now time.Time) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, field := range fields(name, info, now) {
		fmt.Fprintf(table, "%s\t%s\n", field[0], command.Line(field[1]))
	}
	if err := table.Flush(); err != nil {
		return &command.OutputError{Err: err}
	}
	if info.Mesh == nil || len(info.Mesh.Peers) == 0 {
		return nil
	}
	fmt.Fprintln(table, "PEER\tMESH ADDRESS\tENDPOINT\tHANDSHAKE\tAPI OVER MESH")
	for _, p := range info.Mesh.Peers {
		row(table, p.Name, p.Address.String(), endpoint(p), handshake(p.Handshake), overMesh(p))
	}
	if err := table.Flush(); err != nil {
		return &command.OutputError{Err: err}
	}
	return nil
}

// row writes a line of a table. What is in it comes from nodes.
func row(table *tabwriter.Writer, cells ...string) {
	for i, cell := range cells {
		end := "\t"
		if i == len(cells)-1 {
			end = "\n"
		}
		fmt.Fprint(table, command.Line(cell), end)
	}
}

// fields returns the names of a node's details and what they are. Those that the node
// doesn't have are left out.
func fields(name string, info message.Info, now time.Time) [][2]string {
	all := [][2]string{
		{"name", info.Name},
		{"id", info.ID.String()},
		{"cluster", info.Cluster.String()},
		{"arch", info.Architecture},
		{"kernel", info.Kernel},
		{"boot", info.Boot},
		{"lockdown", info.Lockdown},
		{"state", state(info.State)},
	}
	if info.State.Protection != "" {
		all = append(all, [2]string{"volume", info.State.Protection})
	}
	all = append(all,
		[2]string{"version", info.Version},
		[2]string{"uptime", uptime(info.Uptime)},
		[2]string{"certificate", certificate(info.CertificateExpires, name, now)},
		[2]string{"cluster CA", info.Authority})
	if info.Membership != 0 {
		all = append(all, [2]string{"membership", serial(info.Membership)})
	}
	if info.Revocations != 0 {
		all = append(all, [2]string{"revocations", serial(info.Revocations)})
	}
	mesh := "not configured yet"
	if info.Mesh != nil {
		mesh = fmt.Sprintf("%s (WireGuard port %d)", info.Mesh.Address, info.Mesh.Port)
	}
	return append(all, [2]string{"mesh", mesh})
}

func serial(n uint64) string { return fmt.Sprintf("list serial %d", n) }

// inRAM tells whether a node has no encrypted volume. A folder of an ordinary Linux
// counts as RAM, as the manual has it: nothing protects what is in it, and no node
// should be run so for long.
func inRAM(s message.State) bool {
	return s.Kind == message.StateRAM || s.Kind == message.StateFolder
}

func state(s message.State) string {
	if inRAM(s) {
		return "RAM (lost at reboot)"
	}
	if s.Kind != message.StateEncrypted {
		return fmt.Sprintf("of a kind that this pcctl doesn't know: %s", s.Kind)
	}
	text := fmt.Sprintf("encrypted volume, %d MiB (%d MiB free)", s.Size/mebibyte, s.Free/mebibyte)
	if f := s.Filling; f != nil && f.Total > 0 {
		percent := float64(f.Filled) / float64(f.Total) * 100
		text += fmt.Sprintf(", still growing into its disk: %d%% done", int(min(max(percent, 0), 100)))
	}
	return text
}

// uptime returns a number of seconds as Go writes durations: 72h4m10s.
func uptime(seconds int64) string {
	const most = int64(1<<63-1) / int64(time.Second)
	return (time.Duration(min(max(seconds, 0), most)) * time.Second).String()
}

func certificate(expires time.Time, name string, now time.Time) string {
	at := expires.UTC().Format(minute)
	hint := fmt.Sprintf(" (run 'pcctl --repo ... node renew %s')", name)
	switch left := expires.Sub(now); {
	case left <= 0:
		return "EXPIRED " + at + hint
	case left <= reminder:
		return "expires " + at + hint
	}
	return "expires " + at
}

func endpoint(p message.Peer) string {
	text := p.Endpoint
	if text == "" {
		text = "-"
	}
	if p.Relay != "" {
		text += " (relay " + p.Relay + ")"
	}
	return text
}

func handshake(age *int64) string {
	if age == nil {
		return "never"
	}
	return uptime(*age) + " ago"
}

func overMesh(p message.Peer) string {
	if p.RoundTrip == nil {
		if p.Error == "" {
			return "no answer"
		}
		return p.Error
	}
	return fmt.Sprintf("ok, %.1f ms", float64(*p.RoundTrip)/float64(time.Millisecond))
}
