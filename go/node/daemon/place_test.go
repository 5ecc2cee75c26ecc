package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"powercloud.unidatum.com/go/node/volume"
	"powercloud.unidatum.com/go/node/volume/header"
	"powercloud.unidatum.com/go/sys/gpt"
	"powercloud.unidatum.com/tests/output"
)

// TestWipeOption has a state partition with something else on it: it is wiped where the
// command line has the option as a word of its own, and stays as it is everywhere else.
func TestWipeOption(t *testing.T) {
	const foreign = "a file system"
	for name, c := range map[string]struct {
		words, content string
		wiped          bool
		said           string
	}{
		"the option":          {"quiet powercloud.state.wipe=1 lockdown=confidentiality\n", foreign, true, "and is wiped"},
		"the option alone":    {"powercloud.state.wipe=1\n", foreign, true, "and is wiped"},
		"no option":           {"quiet lockdown=confidentiality\n", foreign, false, ""},
		"no words":            {"\n", foreign, false, ""},
		"a longer word":       {"quiet powercloud.state.wipe=10\n", foreign, false, ""},
		"a longer name":       {"quiet xpowercloud.state.wipe=1\n", foreign, false, ""},
		"it is turned off":    {"powercloud.state.wipe=0\n", foreign, false, ""},
		"a value with it":     {"init=/init,powercloud.state.wipe=1,quiet\n", foreign, false, ""},
		"no command line":     {"", foreign, false, "the kernel's command line can't be read"},
		"a damaged header":    {"powercloud.state.wipe=1\n", "PCvolume and no more", false, ""},
		"a headerless volume": {"powercloud.state.wipe=1\n", foreign + strings.Repeat("\x00", header.Area-len(foreign)) + "integrt\x00", false, "isn't wiped"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			commandLine, partition := filepath.Join(folder, "cmdline"), filepath.Join(folder, "vda2")
			was := make([]byte, 2*header.Area)
			copy(was, c.content)
			err := os.WriteFile(partition, was, 0o600)
			if c.words != "" {
				err = errors.Join(err, os.WriteFile(commandLine, []byte(c.words), 0o600))
			}
			if err != nil {
				t.Fatal(err)
			}
			said := &output.Text{}
			config := Config{Log: slog.New(slog.NewTextHandler(said, nil))}
			if err := config.wipe(commandLine, partition); err != nil {
				t.Errorf("the node doesn't start: %v", err)
			}
			is, err := os.ReadFile(partition)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := volume.Look(partition); errors.Is(err, volume.ErrBlank) != c.wiped || bytes.Equal(is, was) == c.wiped {
				t.Errorf("wiped: %v, want %v: %v", !bytes.Equal(is, was), c.wiped, err)
			}
			if got := said.String(); !strings.Contains(got, c.said) || c.said == "" && got != "" {
				t.Errorf("it said %q, want %q", got, c.said)
			}
		})
	}
}

// TestLateDisk: a place in memory is superseded by a state partition, or by several.
func TestLateDisk(t *testing.T) {
	for _, last := range []error{nil, fmt.Errorf("%w: sda2, sdb2", gpt.ErrSeveral)} {
		synctest.Test(t, func(t *testing.T) {
			answers := []error{gpt.ErrNone, errors.New("the disks can't be listed"), gpt.ErrNone, last}
			p := provisional{find: func() error {
				answer := answers[0]
				answers = answers[1:]
				return answer
			}}
			began := time.Now()
			if err := p.Superseded(t.Context()); err != nil || len(answers) > 0 || time.Since(began) != 3*lateDiskPause {
				t.Errorf("after %v, with %d answers left: %v", time.Since(began), len(answers), err)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (provisional{find: func() error { return gpt.ErrNone }}).Superseded(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("without a disk: %v", err)
	}
}
