package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"
)

// maxConsole is how much of a console is kept to be searched, in bytes.
const maxConsole = 8 << 20

// lastLines is how many lines of a console an error shows: enough for all that
// a kernel says when it panics.
const lastLines = 80

// ErrEnded is returned by [Console.Find] where the machine went off without
// writing what was waited for.
var ErrEnded = errors.New("the machine is off")

// A Console is what a machine writes to its first serial port, without escape
// sequences and carriage returns.
type Console struct {
	name   string
	copies io.Writer // Everything, as it comes.

	mutex   sync.Mutex
	strip   stripper
	text    []byte
	from    int // Where the next search begins.
	pieces  []piece
	found   time.Time
	changed chan struct{}
	on      bool
	input   io.Writer
}

// A piece of a console's text came at once, or nearly so.
type piece struct {
	end int // Where in the text the next one begins.
	at  time.Time
}

// maxPiece is for how long what comes is one piece: it bounds how many there are.
const maxPiece = 10 * time.Millisecond

func newConsole(name string, copies io.Writer) *Console {
	return &Console{name: name, copies: copies, changed: make(chan struct{})}
}

// begin is called when the machine goes on, before follow.
func (c *Console) begin(input io.Writer) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.on, c.input = true, input
}

// follow reads until the machine goes off.
func (c *Console) follow(port io.Reader) {
	buffer := make([]byte, 4096)
	for {
		n, err := port.Read(buffer)
		c.add(buffer[:n], err != nil)
		if err != nil {
			return
		}
	}
}

// add adds what the machine wrote.
func (c *Console) add(b []byte, ended bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	_, _ = c.copies.Write(b) // A copy that fails doesn't fail the test.
	c.text = c.strip.append(c.text, b)
	now := time.Now()
	if last := len(c.pieces) - 1; last >= 0 && now.Sub(c.pieces[last].at) < maxPiece {
		c.pieces[last].end = len(c.text)
	} else {
		c.pieces = append(c.pieces, piece{len(c.text), now})
	}
	if n := len(c.text) - maxConsole; n > 0 {
		c.text = append([]byte(nil), c.text[n:]...)
		c.from = max(0, c.from-n)
		for i := range c.pieces {
			c.pieces[i].end -= n
		}
	}
	if ended {
		c.on = false
	}
	close(c.changed)
	c.changed = make(chan struct{})
}

// Find waits until the console has text that the pattern matches, after what
// the last call found, and returns the match and its groups. Where it fails,
// the error has the console's last lines.
func (c *Console) Find(ctx context.Context, pattern *regexp.Regexp) ([]string, error) {
	for {
		c.mutex.Lock()
		at := pattern.FindSubmatchIndex(c.text[c.from:])
		if at != nil {
			var groups []string
			for i := 0; i < len(at); i += 2 {
				group := ""
				if at[i] >= 0 {
					group = string(c.text[c.from+at[i] : c.from+at[i+1]])
				}
				groups = append(groups, group)
			}
			c.from += at[1]
			c.note()
			c.mutex.Unlock()
			return groups, nil
		}
		on, changed := c.on, c.changed
		c.mutex.Unlock()
		if !on {
			return nil, c.failure(pattern, ErrEnded)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, c.failure(pattern, context.Cause(ctx))
		}
	}
}

// note notes when what was just found came, and forgets when what is before it did. The
// mutex is held.
func (c *Console) note() {
	for i, p := range c.pieces {
		if p.end >= c.from {
			c.found, c.pieces = p.at, c.pieces[i:]
			return
		}
	}
}

// Found returns when the end of what Find last found came, by this host's clock, to
// 10 ms.
func (c *Console) Found() time.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.found
}

func (c *Console) failure(pattern *regexp.Regexp, err error) error {
	return fmt.Errorf("wait for %q on the console of %s: %w; its last lines:\n%s", pattern, c.name, err, c.Last(lastLines))
}

// Last returns the last lines of the console, indented.
func (c *Console) Last(lines int) string {
	text := strings.TrimRight(c.Text(), "\n")
	all := strings.Split(text, "\n")
	return "    " + strings.Join(all[max(0, len(all)-lines):], "\n    ")
}

// Text returns all that the console has.
func (c *Console) Text() string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return string(c.text)
}

// Write types on the console.
func (c *Console) Write(b []byte) (int, error) {
	c.mutex.Lock()
	input, on := c.input, c.on
	c.mutex.Unlock()
	if !on {
		return 0, ErrEnded
	}
	return input.Write(b)
}

// stripper takes a terminal's escape sequences and control characters away.
// Its value is where in a sequence it is.
type stripper int

const (
	inText stripper = iota
	afterEscape
	inSequence
)

// append appends what is left of b to text.
func (s *stripper) append(text, b []byte) []byte {
	for _, char := range b {
		switch {
		case *s == afterEscape && char == '[':
			*s = inSequence
		case *s == afterEscape, *s == inSequence && char >= 0x40 && char <= 0x7e:
			*s = inText
		case *s == inSequence:
		case char == 0x1b:
			*s = afterEscape
		case char == '\n', char == '\t', char >= ' ' && char != 0x7f:
			text = append(text, char)
		}
	}
	return text
}
