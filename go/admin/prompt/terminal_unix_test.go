//go:build unix

package prompt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"powercloud.unidatum.com/go/keys"
)

// helperVariable makes the test binary ask for passphrases, as a process of
// its own on a terminal of its own.
const helperVariable = "PROMPT_TEST_HELPER"

func TestMain(m *testing.M) {
	switch os.Getenv(helperVariable) {
	case "":
		os.Exit(m.Run())
	case "new":
		os.Exit(helper(func(ctx context.Context) ([]byte, error) {
			return NewClusterPassphrase(ctx, System(), Secrets{}, func([]byte) error { return nil })
		}))
	default:
		os.Exit(helper(func(ctx context.Context) ([]byte, error) {
			return Passphrase(ctx, System(), Secrets{})
		}))
	}
}

// helper asks, and prints what was typed on its standard output, which isn't the
// terminal.
func helper(ask func(context.Context) ([]byte, error)) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	secret, err := ask(ctx)
	if err != nil {
		fmt.Printf("error: %v", err)
		return 1
	}
	fmt.Printf("%q", secret)
	return 0
}

// dialogue is a helper process and the terminal it runs on.
type dialogue struct {
	t      *testing.T
	cmd    *exec.Cmd
	tty    *os.File
	seen   bytes.Buffer
	stdout bytes.Buffer
}

func start(t *testing.T, mode string) *dialogue {
	t.Helper()
	d := &dialogue{t: t, cmd: exec.Command(os.Args[0])}
	d.cmd.Env = append(os.Environ(), helperVariable+"="+mode)
	d.cmd.Stdout = &d.stdout
	tty, err := pty.Start(d.cmd)
	if err != nil {
		t.Fatal(err)
	}
	d.tty = tty
	t.Cleanup(func() {
		d.cmd.Process.Kill()
		tty.Close()
	})
	return d
}

// await reads from the terminal until it has shown a text.
func (d *dialogue) await(text string) {
	d.t.Helper()
	if err := d.tty.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		d.t.Fatal(err)
	}
	buffer := make([]byte, 1)
	for !strings.HasSuffix(d.seen.String(), text) {
		if _, err := d.tty.Read(buffer); err != nil {
			d.t.Fatalf("waiting for %q: %v; the terminal shows %q", text, err, d.seen.String())
		}
		d.seen.Write(buffer)
	}
}

func (d *dialogue) enter(text string) {
	d.t.Helper()
	if _, err := io.WriteString(d.tty, text); err != nil {
		d.t.Fatal(err)
	}
}

// echo tells whether the terminal shows what is typed.
func (d *dialogue) echo() bool {
	d.t.Helper()
	conn, err := d.tty.SyscallConn()
	if err != nil {
		d.t.Fatal(err)
	}
	var state *unix.Termios
	err = control(conn, func(fd int) error {
		var err error
		state, err = unix.IoctlGetTermios(fd, getTermios)
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return state.Lflag&unix.ECHO != 0
}

func (d *dialogue) finish() (output string, err error) {
	err = d.cmd.Wait()
	return d.stdout.String(), err
}

func TestReadSecretWithoutEcho(t *testing.T) {
	d := start(t, "unlock")
	d.await("Passphrase: ")
	if d.echo() {
		t.Error("the terminal echoes at the prompt")
	}
	d.enter("correct horse\n")
	output, err := d.finish()
	if err != nil || output != `"correct horse"` {
		t.Errorf("output %q, error %v", output, err)
	}
	if !d.echo() {
		t.Error("the terminal doesn't echo after the prompt")
	}
	d.await("\n")
	if strings.Contains(d.seen.String(), "horse") {
		t.Errorf("the terminal showed the passphrase: %q", d.seen.String())
	}
}

func TestNewPassphraseIsAskedTwice(t *testing.T) {
	d := start(t, "new")
	d.await("New passphrase: ")
	d.enter("correct horse\n")
	d.await("Repeat passphrase: ")
	if d.echo() {
		t.Error("the terminal echoes at the second prompt")
	}
	d.enter("correct horse\n")
	output, err := d.finish()
	if err != nil || output != `"correct horse"` {
		t.Errorf("output %q, error %v", output, err)
	}
}

// Both lines may be there before the first prompt: the first prompt must not
// swallow the second line.
func TestTypeAheadIsKept(t *testing.T) {
	d := start(t, "new")
	d.await("New passphrase: ")
	d.enter("correct horse\ncorrect horse\n")
	output, err := d.finish()
	if err != nil || output != `"correct horse"` {
		t.Errorf("output %q, error %v", output, err)
	}
}

func TestNewPassphraseMistyped(t *testing.T) {
	d := start(t, "new")
	d.await("New passphrase: ")
	d.enter("correct horse\n")
	d.await("Repeat passphrase: ")
	d.enter("correct house\n")
	output, err := d.finish()
	if err == nil || !strings.Contains(output, "the two passphrases differ") {
		t.Errorf("output %q, error %v", output, err)
	}
}

func TestInterruptRestoresTheTerminal(t *testing.T) {
	d := start(t, "unlock")
	d.await("Passphrase: ")
	d.enter("half a pass\x03")
	output, err := d.finish()
	if err == nil || !strings.HasPrefix(output, "error: ") {
		t.Errorf("output %q, error %v", output, err)
	}
	if !d.echo() {
		t.Error("the terminal doesn't echo after an interruption")
	}
}

func TestEndOfInputIsNoPassphrase(t *testing.T) {
	d := start(t, "unlock")
	d.await("Passphrase: ")
	d.enter("\x04")
	output, err := d.finish()
	if err == nil || output != "error: "+ErrInterrupted.Error() {
		t.Errorf("output %q, error %v", output, err)
	}
}

func TestNoTerminal(t *testing.T) {
	for _, path := range []string{"/dev/null", "/nonexistent/tty"} {
		if _, err := device(path).ReadSecret(t.Context(), "Passphrase: "); !errors.Is(err, ErrNoTerminal) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestScanLineIsBounded(t *testing.T) {
	for _, test := range []struct {
		length int
		ok     bool
	}{{0, true}, {keys.MaxPassphrase, true}, {keys.MaxPassphrase + 1, false}} {
		line, err := scanLine(strings.NewReader(strings.Repeat("x", test.length) + "\nnext"))
		if (err == nil) != test.ok || (test.ok && len(line) != test.length) {
			t.Errorf("%d bytes: %d read, error %v", test.length, len(line), err)
		}
	}
}
