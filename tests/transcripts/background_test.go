package transcripts

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// patience is how long a command that goes on in the background has for what is
// written of it. It isn't waited for but when that never comes.
const patience = time.Minute

// background runs a step of a session that goes on while later ones are run:
//
//	background RECORD STEP
//
// RECORD is the session's record, where STEP.sh is the command and STEP.want what it
// is to print first. Once it has, or can't any more, STEP.out and STEP.status are
// written, the codes that it has printed are put into later steps, and STEP.ready, a
// named pipe, gets a line. The exit status is the command's, which also gets SIGTERM.
func background() int {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: background RECORD STEP")
		return 2
	}
	b := &running{file: filepath.Join(os.Args[1], os.Args[2])}
	want, err := os.ReadFile(b.file + ".want")
	if err != nil {
		fmt.Fprintln(os.Stderr, "background:", err)
		return 2
	}
	b.want = lines(string(want))
	status, err := b.run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "background:", err)
	}
	return status
}

// running is a step that goes on.
type running struct {
	file    string
	want    []string
	printed strings.Builder
	told    bool
}

// run runs the command to its end.
func (b *running) run() (status int, err error) {
	command := exec.Command("sh", b.file+".sh")
	output, err := command.StdoutPipe()
	if err != nil {
		return 2, err
	}
	command.Stderr = command.Stdout
	if err := command.Start(); err != nil {
		return 2, errors.Join(err, b.tell())
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	go func() {
		for s := range signals {
			// It may have ended.
			_ = command.Process.Signal(s)
		}
	}()
	pieces := make(chan string)
	go func() {
		defer close(pieces)
		piece := make([]byte, 4096)
		for {
			n, err := output.Read(piece)
			if n > 0 {
				pieces <- string(piece[:n])
			}
			if err != nil {
				return
			}
		}
	}()
	err = b.follow(pieces)
	if waited := command.Wait(); waited != nil && command.ProcessState == nil {
		err = errors.Join(err, waited)
	}
	return command.ProcessState.ExitCode(), err
}

// follow tells of what was printed when it is what is written.
func (b *running) follow(pieces <-chan string) error {
	late := time.After(patience)
	for {
		select {
		case piece, more := <-pieces:
			b.printed.WriteString(piece)
			if b.told {
				if more {
					continue
				}
				return nil
			}
			if more && !match(b.want, lines(b.printed.String())) {
				continue
			}
			if err := b.tell(); err != nil || !more {
				return err
			}
		case <-late:
			if b.told {
				continue
			}
			if err := b.tell(); err != nil {
				return err
			}
		}
	}
}

// tell lets the session go on.
func (b *running) tell() error {
	b.told = true
	printed := b.printed.String()
	status := "1\n"
	if match(b.want, lines(printed)) {
		if err := learn(filepath.Dir(b.file), b.want, lines(printed)); err == nil {
			status = "0\n"
		} else {
			printed += err.Error() + "\n"
		}
	}
	err := errors.Join(os.WriteFile(b.file+".out", []byte(printed), 0o600), os.WriteFile(b.file+".status", []byte(status), 0o600))
	// The session waits for it in any case.
	ready, opened := os.OpenFile(b.file+".ready", os.O_WRONLY, 0)
	if opened != nil {
		return errors.Join(err, opened)
	}
	_, written := io.WriteString(ready, "\n")
	return errors.Join(err, written, ready.Close())
}

// learn puts the codes that were printed into all commands of a record, in the place
// of those that are written.
func learn(record string, want, printed []string) error {
	written := recoveryKey.FindAllString(strings.Join(want, "\n"), -1)
	got := recoveryKey.FindAllString(strings.Join(printed, "\n"), -1)
	if len(written) == 0 {
		return nil
	}
	if len(written) != len(got) {
		return fmt.Errorf("%d codes are written, and %d were printed", len(written), len(got))
	}
	pairs := make([]string, 0, 2*len(got))
	for i := range got {
		pairs = append(pairs, written[i], got[i])
	}
	codes := strings.NewReplacer(pairs...)
	commands, err := filepath.Glob(filepath.Join(record, "*.sh"))
	if err != nil {
		return err
	}
	for _, name := range commands {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		// The one that drives them all is being read.
		if replaced := codes.Replace(string(text)); replaced != string(text) {
			if err := os.WriteFile(name, []byte(replaced), 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}
