package machine

import (
	"bytes"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
)

// process is a program that never outlives this one.
type process struct {
	command *exec.Cmd
	said    *tail
	// done is closed when the program has ended; err is then how.
	done chan struct{}
	err  error
}

// run starts a program. When this program ends in whatever way, the kernel
// kills the other.
func run(command *exec.Cmd) (*process, error) {
	p := &process{command: command, said: &tail{}, done: make(chan struct{})}
	command.Stdout, command.Stderr = p.said, p.said
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		// The signal comes when the thread that started the program ends, so
		// that thread has to stay as long as the program does.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			p.err = command.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// kill ends the program at once and waits until it is gone.
func (p *process) kill() {
	_ = p.command.Process.Kill() // It has ended already, or it ends now.
	<-p.done
}

// failure tells why the program has ended, by what it said last.
func (p *process) failure() error {
	if text := p.said.String(); text != "" {
		return fmt.Errorf("it said: %s", text)
	}
	if p.err != nil {
		return p.err
	}
	return fmt.Errorf("it ended without a word")
}

// tail keeps the last bytes that were written to it.
type tail struct {
	mutex sync.Mutex
	text  []byte
}

// maxTail is how much of what a program says is kept, in bytes.
const maxTail = 4096

func (t *tail) Write(b []byte) (int, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.text = append(t.text, b...)
	if n := len(t.text) - maxTail; n > 0 {
		t.text = bytes.Clone(t.text[n:])
	}
	return len(b), nil
}

// String is what was written, in one line.
func (t *tail) String() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return strings.Join(strings.Fields(string(t.text)), " ")
}
