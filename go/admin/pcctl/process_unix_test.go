//go:build unix

package pcctl

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"powercloud.unidatum.com/go/store/storetest"
)

// processVariable makes the test binary be pcctl.
const processVariable = "PCCTL_TEST_PROCESS"

func TestMain(m *testing.M) {
	if os.Getenv(processVariable) != "" {
		os.Exit(Main())
	}
	os.Exit(m.Run())
}

// process prepares pcctl as a process of its own.
func process(bed *storetest.Testbed, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = []string{processVariable + "=1", "TZ=UTC", "POWERCLOUD_REPO=" + strings.Join(bed.Paths, ",")}
	return cmd
}

// terminal is what a process has on its terminal.
type terminal struct {
	t    *testing.T
	tty  *os.File
	seen bytes.Buffer
}

func startOnTerminal(t *testing.T, cmd *exec.Cmd) *terminal {
	t.Helper()
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 100})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		tty.Close()
	})
	return &terminal{t: t, tty: tty}
}

// await reads until the terminal has shown a text.
func (s *terminal) await(text string) {
	s.t.Helper()
	if err := s.tty.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		s.t.Fatal(err)
	}
	buffer := make([]byte, 1)
	for !strings.HasSuffix(s.seen.String(), text) {
		if _, err := s.tty.Read(buffer); err != nil {
			s.t.Fatalf("waiting for %q: %v; the terminal shows %q", text, err, s.seen.String())
		}
		s.seen.Write(buffer)
	}
}

func (s *terminal) enter(text string) {
	s.t.Helper()
	if _, err := io.WriteString(s.tty, text); err != nil {
		s.t.Fatal(err)
	}
}

func status(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

// The prompt is on the terminal, the result alone on standard output.
func TestPromptOnTheTerminal(t *testing.T) {
	bed := storetest.New(t, 1)
	bed.Init()
	storetest.Put(t, bed.Open(), "a", []byte("hello"))
	cmd := process(bed, "get", "a")
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	terminal := startOnTerminal(t, cmd)
	terminal.await("Passphrase: ")
	terminal.enter(bed.Cluster.Passphrase + "\n")
	if err := cmd.Wait(); err != nil || stdout.String() != "hello" {
		t.Errorf("%q, %v", stdout.String(), err)
	}
	if strings.Contains(terminal.seen.String(), bed.Cluster.Passphrase) {
		t.Error("the terminal showed the passphrase")
	}
}

func TestCtrlCAtThePrompt(t *testing.T) {
	bed := storetest.New(t, 1)
	bed.Init()
	cmd := process(bed, "ls")
	terminal := startOnTerminal(t, cmd)
	terminal.await("Passphrase: ")
	terminal.enter("half\x03")
	if got := status(cmd.Wait()); got != 1 {
		t.Errorf("status %d", got)
	}
	terminal.await("pcctl: interrupted\r\n")
}

// Once standard input was read from, pcctl is in the middle of the work.
func TestSignalsEndTheCommand(t *testing.T) {
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		bed := storetest.New(t, 1)
		bed.Init()
		cmd := process(bed, "put", "a", "-")
		cmd.Env = append(cmd.Env, "POWERCLOUD_RECOVERY_KEY="+bed.Cluster.Recovery.String())
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		reader, feed, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdin = reader
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		reader.Close()
		// More than a pipe holds: it is all written once pcctl reads.
		if _, err := feed.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if got := status(cmd.Wait()); got != 1 || stderr.String() != "pcctl: interrupted\n" {
			t.Errorf("%v: status %d, %q", signal, got, stderr.String())
		}
		feed.Close()
		temporary, _ := filepath.Glob(filepath.Join(bed.Paths[0], "tmp", "*"))
		if len(temporary) != 0 {
			t.Errorf("%v: left behind: %q", signal, temporary)
		}
	}
}

func TestClosedPipe(t *testing.T) {
	bed := storetest.New(t, 1)
	bed.Init()
	storetest.Put(t, bed.Open(), "a", []byte("hello"))
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	reader.Close()
	defer writer.Close()
	cmd := process(bed, "get", "a")
	cmd.Env = append(cmd.Env, "POWERCLOUD_RECOVERY_KEY="+bed.Cluster.Recovery.String())
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = writer, &stderr
	if got := status(cmd.Run()); got != 1 || !strings.HasSuffix(stderr.String(), "broken pipe\n") || strings.Count(stderr.String(), "\n") != 1 {
		t.Errorf("status %d, %q", got, stderr.String())
	}
}

// A bar is drawn on the terminal while the result goes elsewhere, and is gone
// in the end.
func TestProgressOnATerminal(t *testing.T) {
	bed := storetest.New(t, 1)
	bed.Init()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, storetest.Content(1, 9<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := process(bed, "put", "a", file)
	cmd.Env = append(cmd.Env, "POWERCLOUD_RECOVERY_KEY="+bed.Cluster.Recovery.String())
	terminal := startOnTerminal(t, cmd)
	terminal.await("stored a (9437184 bytes, 3 chunks)\r\n")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	drawn, _ := strings.CutSuffix(terminal.seen.String(), "stored a (9437184 bytes, 3 chunks)\r\n")
	if !strings.Contains(drawn, "storing") || !strings.HasSuffix(drawn, "\x1b[2K\r") {
		t.Errorf("drawn: %q", drawn)
	}
}
