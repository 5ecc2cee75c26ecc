package daemon

import (
	"context"
	"errors"
	"flag"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"powercloud.unidatum.com/go/node/logs"
	"powercloud.unidatum.com/go/node/notify"
	"powercloud.unidatum.com/tests/output"
)

func TestFlags(t *testing.T) {
	for args, want := range map[string]string{
		"":                                         "",
		"--state /x --listen 127.0.0.1:7443":       "",
		"--state /x --listen :7443":                "",
		"--state /x":                               "give both",
		"--listen 127.0.0.1:7443":                  "give both",
		"--state /x --listen 127.0.0.1":            "is not HOST:PORT",
		"--state /x --listen 127.0.0.1:":           "is not HOST:PORT",
		"--state /x --listen 127.0.0.1:7443 extra": `unexpected argument "extra"`,
		"--nonsense":                               "nonsense",
	} {
		var said strings.Builder
		f, err := parse(strings.Fields(args), &said)
		if want == "" && (err != nil || f == nil || said.Len() > 0) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", args, err)
		}
		if strings.Contains(said.String(), "nonsense") {
			t.Errorf("%q: the error is said twice", args)
		}
	}
	var said strings.Builder
	if _, err := parse([]string{"--help"}, &said); !errors.Is(err, flag.ErrHelp) || !strings.HasPrefix(said.String(), "usage: pcd --state DIR --listen ADDR\n") {
		t.Errorf("%v, %q", err, said.String())
	}
}

// TestAlone: without flags, and without a node's PID 1, pcd must not take the machine that
// it was started on for a node.
func TestAlone(t *testing.T) {
	before := net.DefaultResolver
	for _, value := range []string{"", "4"} {
		if value != "" {
			t.Setenv(notify.Variable, value)
		}
		if c, err := new(flags).config("dev", "pool.example"); err == nil || (value == "") != errors.Is(err, errAlone) || c.Network != nil || c.Clock != nil {
			t.Errorf("with %s=%q: %+v, %v", notify.Variable, value, c, err)
		}
	}
	if net.DefaultResolver != before {
		t.Error("the program's resolver is another")
	}
}

// TestTakenPort: a pcd that is an ordinary program ends.
func TestTakenPort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	console := &output.Text{}
	err = Run(context.Background(), Config{Version: "dev", Console: console, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Listen: taken.Addr().String(), State: filepath.Join(t.TempDir(), "state"), Lines: logs.NewLines()})
	if !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("%v", err)
	}
	if strings.Contains(console.String(), "enrollment code") {
		t.Error("a code was shown that nothing answers to")
	}
}
