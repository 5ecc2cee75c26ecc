package machine

import (
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"
)

// play returns a console on which this is written, piece by piece, before the
// machine goes off.
func play(pieces ...string) (*Console, *bytes.Buffer) {
	var raw bytes.Buffer
	c := newConsole("test", &raw)
	c.begin(io.Discard)
	go func() {
		for _, piece := range pieces {
			c.add([]byte(piece), false)
		}
		c.add(nil, true)
	}()
	return c, &raw
}

func TestConsoleFinds(t *testing.T) {
	c, raw := play("one\r\n\x1b[2J\x1b[01;32mtw", "o\x1b", "[0m 7\r\nthree\n", "two 8")
	for _, want := range [][]string{{"two 7", "7"}, {"two 8", "8"}} {
		got, err := c.Find(t.Context(), regexp.MustCompile(`two (\d)`))
		if err != nil || strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("found %q, %v, want %q", got, err, want)
		}
	}
	if text := c.Text(); text != "one\ntwo 7\nthree\ntwo 8" {
		t.Errorf("the text is %q", text)
	}
	if _, err := c.Find(t.Context(), regexp.MustCompile(`three`)); !errors.Is(err, ErrEnded) {
		t.Errorf("what came before was found, or: %v", err)
	}
	if !strings.Contains(raw.String(), "\x1b[2J") {
		t.Errorf("the copy is %q", raw)
	}
}

func TestConsoleFails(t *testing.T) {
	c, _ := play(strings.Repeat("line\n", 100), "the last line\n")
	_, err := c.Find(t.Context(), regexp.MustCompile(`never`))
	if !errors.Is(err, ErrEnded) || !strings.Contains(err.Error(), `wait for "never" on the console of test`) ||
		!strings.HasSuffix(err.Error(), "    line\n    the last line") || strings.Count(err.Error(), "\n") != lastLines {
		t.Errorf("the error is %v", err)
	}
	if _, err := c.Write([]byte("x")); !errors.Is(err, ErrEnded) {
		t.Errorf("typed on a machine that is off: %v", err)
	}

	silent := newConsole("silent", io.Discard)
	silent.begin(io.Discard)
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := silent.Find(ctx, regexp.MustCompile(`x`)); !errors.Is(err, why) {
		t.Errorf("the error is %v", err)
	}
}

func TestConsoleForgets(t *testing.T) {
	c := newConsole("test", io.Discard)
	c.begin(io.Discard)
	for range 3 {
		c.add(bytes.Repeat([]byte("x"), maxConsole/2), false)
	}
	c.add([]byte("end"), true)
	if _, err := c.Find(t.Context(), regexp.MustCompile(`end$`)); err != nil || len(c.Text()) != maxConsole {
		t.Errorf("it has %d bytes, %v", len(c.Text()), err)
	}
}

// TestConsoleTimes has pieces come one after another, as soon as the one before was found.
func TestConsoleTimes(t *testing.T) {
	c := newConsole("test", io.Discard)
	c.begin(io.Discard)
	find := func(pattern string) time.Time {
		t.Helper()
		if _, err := c.Find(t.Context(), regexp.MustCompile(pattern)); err != nil {
			t.Fatal(err)
		}
		return c.Found()
	}
	before := time.Now()
	c.add([]byte("one\ntwo\n"), false)
	after := time.Now()
	one, two := find("one"), find("two")
	if one.Before(before) || one.After(after) || !two.Equal(one) {
		t.Errorf("what came between %v and %v was found to be of %v and %v", before, after, one, two)
	}
	// Another piece, however fast this goes.
	c.pieces[0].at = before.Add(-time.Second)
	c.add([]byte("three\n"), false)
	if three := find("three"); three.Before(after) {
		t.Errorf("what came after %v was found to be of %v", after, three)
	}
	c.add(bytes.Repeat([]byte("-"), maxConsole), false)
	c.pieces[len(c.pieces)-1].at = before.Add(-time.Minute)
	c.add([]byte("four\n"), false)
	if four := find("four"); four.Before(after) {
		t.Errorf("what came after %v, and after more than is kept, was found to be of %v", after, four)
	}
}
