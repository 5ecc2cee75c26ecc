package enroll

import (
	"context"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"powercloud.unidatum.com/tests/admin"
	"powercloud.unidatum.com/tests/machine"
	"powercloud.unidatum.com/tests/node"
)

const (
	port     = node.Port
	mebibyte = 1 << 20
	// name is that of every node here.
	name = "home-1"
	// connected begins a pattern for what a console shows of a node that has an address of
	// QEMU's own network. Lines of the log can be between.
	connected = `(?s)addresses: 10\.0\.2\.15\b.*?`
)

// blank is a machine with a node's image, whose API can be reached.
func blank(t *testing.T) machine.Config {
	t.Helper()
	image, architecture := machine.Image(t)
	config := node.Machine(architecture, image)
	config.Cards[0].Forward = []int{port}
	// The firmware finds it again behind another controller.
	config.Disks[0].Boot = 1
	return config
}

// enroll starts a node and makes it a member. It returns the code that did so.
func enroll(ctx context.Context, t *testing.T, m *machine.Machine, a *admin.Admin) (code string) {
	t.Helper()
	node.ExpectBanner(ctx, m)
	code = node.Code(ctx, m, "enrollment")
	output := a.Unlocked(ctx, "node", "enroll", m.Address(ctx, port), code, name)
	want := regexp.MustCompile(`\Aenrolled node home-1 \([0-9a-f]{16}\) at 127\.0\.0\.1:\d+\nmesh membership: 1 node \(serial \d+\)\n` +
		`NODE +MEMBERSHIP\nhome-1 +serial \d+\n\z`)
	if !want.MatchString(output) {
		t.Errorf("node enroll printed %q", output)
	}
	m.Expect(ctx, `PowerCloud node home-1 \([0-9a-f]{16}\) is a member of the cluster`)
	return code
}

// unlock unlocks a node that has been restarted. Its port on this machine may be
// another.
func unlock(ctx context.Context, t *testing.T, m *machine.Machine, a *admin.Admin) {
	t.Helper()
	m.Expect(ctx, connected+`PowerCloud node home-1 \([0-9a-f]{16}\) is locked: its state volume is encrypted\.`)
	address := m.Address(ctx, port)
	shown := node.Code(ctx, m, "unlock")
	if status := a.Run(ctx, "status"); !strings.Contains(status, "home-1: unreachable (") {
		t.Errorf("of a node that is locked, status says\n%s", status)
	}
	wrong := "AAAA" + shown[4:]
	if said := a.Refused(ctx, "node", "unlock", name, wrong, address); said != "pcctl: node key does not match the unlock code" {
		t.Errorf("with a wrong code, node unlock said %q", said)
	}
	if output := a.Unlocked(ctx, "node", "unlock", name, shown, address); output != "node home-1 unlocked\n" {
		t.Errorf("node unlock printed %q", output)
	}
	a.Unlocked(ctx, "node", "addr", name, address)
}

// renew renews a node's certificate, and returns what node info says of that.
func renew(ctx context.Context, t *testing.T, a *admin.Admin) string {
	t.Helper()
	output := a.Unlocked(ctx, "node", "renew", name)
	found := regexp.MustCompile(`\ANODE +CERTIFICATE\nhome-1 +renewed, (expires \d{4}-\d\d-\d\d \d\d:\d\d UTC)\n\z`).FindStringSubmatch(output)
	if found == nil {
		t.Fatalf("node renew printed %q", output)
	}
	if got := info(ctx, a)["certificate"]; got != found[1] {
		t.Errorf("node renew printed %q, and node info says that the certificate %s", output, got)
	}
	return found[1]
}

// info returns what node info prints, by its labels.
func info(ctx context.Context, a *admin.Admin) map[string]string {
	fields := make(map[string]string)
	for line := range strings.Lines(a.Run(ctx, "node", "info", name)) {
		label, value, _ := strings.Cut(line, " ")
		fields[label] = strings.TrimSpace(value)
	}
	return fields
}

// size returns the size of a node's volume, and free how much of it is free, in MiB.
func size(t *testing.T, fields map[string]string) int { return mebibytes(t, fields, 1) }
func free(t *testing.T, fields map[string]string) int { return mebibytes(t, fields, 2) }

func mebibytes(t *testing.T, fields map[string]string, number int) int {
	t.Helper()
	found := regexp.MustCompile(`^encrypted volume, (\d+) MiB \((\d+) MiB free\)`).FindStringSubmatch(fields["state"])
	if found == nil {
		t.Fatalf("the node's state is %q", fields["state"])
	}
	mib, err := strconv.Atoi(found[number])
	if err != nil {
		t.Fatal(err)
	}
	return mib
}

// pings has a node try its network: QEMU's, whose gateway stands for this host. Of the
// host's names nobody tells the node any here.
func pings(ctx context.Context, t *testing.T, a *admin.Admin) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, open, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	const gateway = "10.0.2.2"
	answers := regexp.MustCompile(`\A(10\.0\.2\.2  answers in \S+ ms\n)+\z`)
	for _, target := range []string{gateway, gateway + ":" + open} {
		if output := a.Run(ctx, "node", "ping", name, target); !answers.MatchString(output) {
			t.Errorf("node ping of %s printed %q", target, output)
		}
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if said := a.Refused(ctx, "node", "ping", name, gateway+":"+open); said != "pcctl: node home-1 doesn't reach "+gateway+":"+open {
		t.Errorf("of a port that nobody has open, node ping said %q", said)
	}
}

// TestConsole takes a node through its life: enrolled from the console, restarted,
// unlocked, given a new certificate, moved behind another controller and to a larger
// disk, erased and enrolled again, and powered off.
func TestConsole(t *testing.T) {
	ctx := machine.Patient(t)
	a := admin.New(ctx, t)
	m := machine.Start(ctx, t, blank(t))
	used := enroll(ctx, t, m, a)
	first := info(ctx, a)
	if first["lockdown"] != "confidentiality" || first["boot"] != "UEFI, Secure Boot off" || first["name"] != name {
		t.Errorf("node info printed %v", first)
	}
	if got := first["volume"]; got != "authenticated: AES-256-XTS with HMAC-SHA256 per sector (dm-integrity)" {
		t.Errorf("node info says of the volume that it is %q", got)
	}
	if got := size(t, first); got < 600 || got > 766 {
		t.Errorf("the volume has %d MiB", got)
	}
	for code, want := range map[string]string{
		used: `pcctl: node is already enrolled in a cluster, as "home-1" of this one`,
		"AAAA-AAAA-AAAA-AAAA-AAAA-AAAA-AAAA-AAAA": "pcctl: node key does not match the enrollment code (wrong code or interception)",
	} {
		if said := a.Refused(ctx, "node", "enroll", m.Address(ctx, port), code, "home-2"); said != want {
			t.Errorf("enrolled twice, pcctl said %q, want %q", said, want)
		}
	}
	pings(ctx, t, a)
	if err := os.WriteFile(a.Path("notes.txt"), []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a.Unlocked(ctx, "put", "notes.txt", a.Path("notes.txt"))

	if output := a.Run(ctx, "node", "reboot", name); output != "node home-1 is rebooting\n" {
		t.Errorf("node reboot printed %q", output)
	}
	m.WaitReset(ctx)
	unlock(ctx, t, m, a)
	second := info(ctx, a)
	if second["id"] != first["id"] || second["certificate"] != first["certificate"] {
		t.Errorf("the node was %v and is %v", first, second)
	}
	if output := a.Unlocked(ctx, "get", "notes.txt"); output != "hello\n" {
		t.Errorf("what was stored before the restart is %q", output)
	}
	if output := a.Run(ctx, "node", "logs", "--boot", "previous", name); !strings.Contains(output, "an admin ends the machine's run") {
		t.Errorf("the log of the boot before has no reboot:\n%s", output)
	}

	logs := a.Follow(ctx, "node", "logs", "--follow", name)
	logs.Expect("the state volume is unlocked")
	renewed := renew(ctx, t, a)
	logs.Expect("an admin has renewed the node's certificate")
	logs.Interrupt()
	if output := a.Run(ctx, "node", "poweroff", name); output != "node home-1 is powering off\n" {
		t.Errorf("node poweroff printed %q", output)
	}
	m.Wait(ctx)
	if status := a.Run(ctx, "status"); !strings.Contains(status, "home-1: unreachable (") {
		t.Errorf("of a node that is off, status says\n%s", status)
	}
	m.Move(0, machine.VirtioSCSI)
	m.Enlarge(0, 8192*mebibyte)
	m.PowerOn(ctx)
	unlock(ctx, t, m, a)
	moved := info(ctx, a)
	if got := size(t, moved); got < 7000 {
		t.Errorf("on a disk of 8 GiB the volume has %d MiB", got)
	}
	// The file system grows while it is in use, beyond what the first disk had in all.
	for free(t, moved) <= 1024 && ctx.Err() == nil {
		moved = info(ctx, a)
	}
	if got := moved["certificate"]; got != renewed {
		t.Errorf("the certificate %s after it was renewed, and %s after a restart", renewed, got)
	}

	a.Unlocked(ctx, "node", "rm", "--erase", name)
	m.Wait(ctx)
	m.PowerOn(ctx)
	enroll(ctx, t, m, a)
	if third := info(ctx, a); third["id"] == first["id"] {
		t.Error("a node that was erased has its old ID")
	}
}

// TestBundle has a node join by a file of fw_cfg, and be locked after a restart.
func TestBundle(t *testing.T) {
	ctx := machine.Patient(t)
	a := admin.New(ctx, t)
	a.Unlocked(ctx, "node", "provision", name, a.Path("bundle"))
	bundle, err := os.ReadFile(a.Path("bundle"))
	if err != nil {
		t.Fatal(err)
	}
	config := blank(t)
	config.Files = map[string][]byte{"opt/powercloud/join": bundle}
	m := machine.Start(ctx, t, config)
	m.Expect(ctx, `joined the cluster with a join bundle`)
	m.Expect(ctx, connected+`PowerCloud node home-1 \([0-9a-f]{16}\) is a member of the cluster`)
	a.Unlocked(ctx, "node", "addr", name, m.Address(ctx, port))
	if status := a.Run(ctx, "status"); !strings.HasSuffix(status, "all nodes healthy\n") {
		t.Errorf("of a node that has joined, status says\n%s", status)
	}
	m.Reset(ctx)
	unlock(ctx, t, m, a)
}

// TestSeveralDisks starts a node with two state partitions.
func TestSeveralDisks(t *testing.T) {
	ctx := machine.Patient(t)
	config := blank(t)
	config.Disks = append(config.Disks, config.Disks[0])
	config.Disks[1].Boot = 2
	m := machine.Start(ctx, t, config)
	m.Expect(ctx, `This node can't go on: several PowerCloud state partitions`)
}
