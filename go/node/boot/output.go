package boot

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"powercloud.unidatum.com/go/sys/console"
	"powercloud.unidatum.com/go/sys/kernellog"
)

// maxLine is how many bytes of a line of pcd's are kept.
const maxLine = console.MaxLine

// output brings lines to every console and to the kernel's log. The consoles
// get them through queues, the kernel's log at once, since it never blocks. It
// is safe for use by several goroutines at once.
type output struct {
	consoles *console.Fan

	mu  sync.Mutex
	own *kernellog.Writer
	pcd *kernellog.Writer
}

// openOutput opens what there is. It always returns something that can be
// written to, and what it couldn't open as an error.
func openOutput(m Machine) (*output, error) {
	var failures []error
	var sinks []console.Sink
	table, err := os.ReadFile(m.ConsoleTable)
	if err != nil {
		failures = append(failures, fmt.Errorf("list the consoles: %w", err))
	}
	for _, path := range console.Devices(string(table), m.Devices) {
		device, err := console.OpenDevice(path)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		sinks = append(sinks, console.Sink{Name: path, Writer: device})
	}
	o := &output{consoles: console.New(sinks...)}
	// At this priority the kernel doesn't print a line on the consoles again.
	o.own, err = kernellog.Open(m.KernelLog, "pcinit", kernellog.Debug)
	if err == nil {
		o.pcd, err = kernellog.Open(m.KernelLog, "pcd", kernellog.Debug)
	}
	return o, errors.Join(append(failures, err)...)
}

// logger returns the log of PID 1 itself. There is no time in it: the clock may
// not be set, and the kernel's log has its own.
func (o *output) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(writer(o.ownLines), &slog.HandlerOptions{
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}

// writer makes an io.Writer of a function.
type writer func(lines []byte)

func (w writer) Write(lines []byte) (int, error) {
	w(lines)
	return len(lines), nil
}

// ownLines takes lines of PID 1's log.
func (o *output) ownLines(lines []byte) {
	_, _ = o.consoles.Write([]byte("pcinit: " + string(lines)))
	o.kernel(o.own, string(lines))
}

// pcdLine takes one line of pcd's. People read it as pcd wrote it.
func (o *output) pcdLine(line string) {
	_, _ = o.consoles.Write([]byte(line + "\n"))
	o.kernel(o.pcd, line)
}

func (o *output) kernel(w *kernellog.Writer, line string) {
	if w == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	// Nobody could be told of a failure.
	_ = w.Line(kernellog.Debug, line)
}

// lastWords takes the lines that PID 1 dies with. With the priority of an
// emergency the kernel itself prints them on every console, at once.
func (o *output) lastWords(text string) {
	o.consoles.Flush(time.Second)
	for line := range strings.Lines(text) {
		if o.own != nil {
			_ = o.own.Line(kernellog.Emergency, plain(line))
		} else {
			_, _ = o.consoles.Write([]byte(line))
		}
	}
	o.consoles.Flush(time.Second)
}

// guard runs what a goroutine of PID 1 does.
func (o *output) guard(run func()) {
	defer o.dieLoudly()
	run()
}

// dieLoudly, deferred, writes a panic's last words and ends PID 1, whereupon the
// kernel panics.
func (o *output) dieLoudly() {
	if value := recover(); value != nil {
		o.lastWords(fmt.Sprintf("pcinit panics: %v\n%s", value, debug.Stack()))
		os.Exit(2)
	}
}

// plain takes control characters out of a line, so that nothing that came over
// a network can drive a terminal.
func plain(line string) string {
	line = strings.ToValidUTF8(strings.TrimRight(line, "\r\n"), "?")
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.IsControl(r) && r != '\t' {
			return '?'
		}
		return r
	}, line)
}

// readLines calls a function for each line, made plain, until the end. Longer
// lines come in pieces; begins tells a line's beginning from what goes on with one.
func readLines(r io.Reader, line func(text string, begins bool)) {
	buffered := bufio.NewReaderSize(r, maxLine)
	begins := true
	for {
		b, err := buffered.ReadSlice('\n')
		if len(b) > 0 {
			line(plain(string(b)), begins)
		}
		begins = err == nil
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}
