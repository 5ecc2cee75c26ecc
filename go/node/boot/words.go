package boot

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"powercloud.unidatum.com/go/sys/pstore"
)

const (
	// tailLines is how many of the last lines are kept.
	tailLines = 400
	// crashLines is how many lines are kept of a crash's beginning: what it was, and
	// the stack of the goroutine that it happened in.
	crashLines = 100
	// wordsPrefix begins a line of pcd's in the form of the kernel's log: by its priority
	// it is for debugging only, as those that PID 1 passes on to that log.
	wordsPrefix = "<31>pcd: "
	// maxWordsLine is how many bytes of a line are saved.
	maxWordsLine = 300
	// codeLine begins a line of pcd's that isn't written to flash memory: whoever knows
	// the code can enroll the node.
	codeLine = "enrollment code:"
)

// crashBegins are how the lines begin with which a Go program's crash does.
var crashBegins = []string{"panic: ", "fatal error: ", "SIGQUIT: ", "SIGABRT: "}

// tail keeps the last lines of a program, and apart from them the first ones of its last
// crash: the stacks of every goroutine follow those, and whoever opens connections has a
// say in how many there are. It is safe for use by several goroutines at once.
type tail struct {
	mu    sync.Mutex
	lines []string
	// crash has the crash's first lines, and since is how many lines there were from its
	// beginning on; both are empty without one.
	crash []string
	since int
}

// add takes a line. begins is false for a piece that goes on with a line: what is in the
// middle of one may be a stranger's words.
func (t *tail) add(line string, begins bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lines) == tailLines {
		copy(t.lines, t.lines[1:])
		t.lines = t.lines[:tailLines-1]
	}
	t.lines = append(t.lines, line)
	switch {
	case begins && slices.ContainsFunc(crashBegins, func(begin string) bool { return strings.HasPrefix(line, begin) }):
		t.crash, t.since = nil, 0
	case t.since == 0:
		return
	}
	t.since++
	if len(t.crash) < crashLines {
		t.crash = append(t.crash, line)
	}
}

// text returns what was kept. Where lines are missing in it, a line says so.
func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []string
	// What the last lines don't have of the crash.
	if gone := t.since - len(t.lines); gone > 0 {
		all = slices.Clone(t.crash[:min(gone, len(t.crash))])
		if missing := gone - len(all); missing > 0 {
			all = append(all, fmt.Sprintf("(%d lines are left out here)", missing))
		}
	}
	all = append(all, t.lines...)
	if len(all) == 0 {
		return ""
	}
	return strings.Join(all, "\n") + "\n"
}

// ending returns the first lines of the last crash, or without one the last lines.
func (t *tail) ending() (lines []string, crashed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.since > 0 {
		return slices.Clone(t.crash), true
	}
	return slices.Clone(t.lines), false
}

// wordsToSave says how pcd ended and what it said last, in lines of the kernel log's form.
// There is room for little. Of a crash that is its beginning, since the stacks of every
// goroutine follow; otherwise it is the end.
func wordsToSave(outcome string, said *tail) string {
	ending, crashed := said.ending()
	var lines []string
	for _, line := range ending {
		if !strings.HasPrefix(line, codeLine) {
			lines = append(lines, wordsLine(line))
		}
	}
	first := wordsLine("pcd " + outcome)
	if !crashed {
		room := pstore.MaxWords - len(first)
		begin := len(lines)
		for begin > 0 && len(lines[begin-1]) <= room {
			begin--
			room -= len(lines[begin])
		}
		lines = lines[begin:]
	}
	return first + strings.Join(lines, "")
}

func wordsLine(line string) string {
	return wordsPrefix + strings.ToValidUTF8(line[:min(len(line), maxWordsLine)], "") + "\n"
}
