package transcripts

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// step is a command of a session and what it is to print.
type step struct {
	command string
	output  []string
	// background says that the command goes on, as in another terminal.
	background bool
}

// fails tells whether the command is expected to.
func (s step) fails() bool {
	last := strings.TrimRight(strings.Join(s.output, "\n"), "\n")
	return strings.HasPrefix(last[strings.LastIndex(last, "\n")+1:], "pcctl: ")
}

// extract returns the console sessions of a page, one after the other, and which of
// the harness's commands is to run them.
func extract(page string) (command, session string, err error) {
	var b strings.Builder
	command = "console"
	end, background := "", false
	for i, line := range strings.Split(page, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case end == "" && (trimmed == "```console" || trimmed == "```console background"):
			end, background = "```", trimmed != "```console"
		case end == "" && trimmed == "<!-- console":
			end = "-->"
		case end == "" && trimmed == "<!-- network -->":
			command = "network"
		case end != "" && trimmed == end:
			end, background = "", false
		case end != "":
			if rest, ok := strings.CutPrefix(line, "$ "); ok && background {
				line = "& " + rest
			}
			b.WriteString(line + "\n")
		case strings.HasPrefix(trimmed, "$ "):
			err = fmt.Errorf("line %d: a command outside of a console block isn't tested", i+1)
		}
	}
	if end != "" {
		err = fmt.Errorf("a console block has no end (%s)", end)
	}
	return command, b.String(), err
}

// parse splits a session into steps.
func parse(session string) ([]step, error) {
	var steps []step
	for i, line := range strings.Split(strings.TrimRight(session, "\n"), "\n") {
		command, isCommand := strings.CutPrefix(line, "$ ")
		background := false
		if !isCommand {
			command, background = strings.CutPrefix(line, "& ")
		}
		continued, isContinued := strings.CutPrefix(line, "> ")
		switch last := len(steps) - 1; {
		case isCommand || background:
			steps = append(steps, step{command: command, background: background})
		case strings.HasPrefix(line, "# "), last < 0 && strings.TrimSpace(line) == "":
		case last < 0:
			return nil, fmt.Errorf("line %d: output before the first command: %q", i+1, line)
		case isContinued && len(steps[last].output) == 0:
			steps[last].command += "\n" + continued
		default:
			steps[last].output = append(steps[last].output, line)
		}
	}
	return steps, nil
}

// console runs a session: all its steps in one shell, then compares.
func console(ts *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) != 1 {
		ts.Fatalf("usage: console FILE")
	}
	run(ts, args[0], "sh")
}

// network runs a session in a network of its own.
func network(ts *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) != 1 {
		ts.Fatalf("usage: network FILE")
	}
	run(ts, args[0], "alone", "sh")
}

// run runs the session in a file by a shell, and compares.
func run(ts *testscript.TestScript, file string, shell ...string) {
	session := ts.ReadFile(file)
	ts.Check(os.Remove(ts.MkAbs(file)))
	steps, err := parse(session)
	ts.Check(err)
	// Outside of the session's directory, which belongs to the session.
	record, err := os.MkdirTemp("", "console")
	ts.Check(err)
	ts.Defer(func() { os.RemoveAll(record) })

	var driver strings.Builder
	for i, s := range steps {
		file := fmt.Sprintf("%s/%d", record, i)
		command := s.command
		if s.background {
			// Signals are for it, and not for the shell.
			command = "exec " + command
		}
		ts.Check(os.WriteFile(file+".sh", []byte(command+"\n"), 0o600))
		if s.background {
			if shell[0] != "alone" {
				ts.Fatalf("%s: what goes on in the background needs a network of its own, with which it ends", s.command)
			}
			ts.Check(os.WriteFile(file+".want", []byte(strings.Join(s.output, "\n")), 0o600))
			fmt.Fprintf(&driver, "mkfifo '%s.ready'\nbackground '%s' %d </dev/null &\nread -r ready <'%s.ready'\n", file, record, i, file)
			continue
		}
		fmt.Fprintf(&driver, ". '%s.sh' >'%s.out' 2>&1 </dev/null\necho $? >'%s.status'\n", file, file, file)
	}
	// Not one of the commands.
	ts.Check(os.WriteFile(record+"/driver", []byte(driver.String()), 0o600))
	ts.Check(ts.Exec(shell[0], append(shell[1:], record+"/driver")...))
	compare(ts, record, steps)
}

// compare compares what the steps of a session have printed with what is written.
func compare(ts *testscript.TestScript, record string, steps []step) {
	for i, s := range steps {
		file := fmt.Sprintf("%s/%d", record, i)
		output, err := os.ReadFile(file + ".out")
		if err != nil {
			ts.Fatalf("the session ended before: $ %s", s.command)
		}
		status, err := os.ReadFile(file + ".status")
		if err != nil {
			ts.Fatalf("the session ended in: $ %s\n%s", s.command, output)
		}
		failed := strings.TrimSpace(string(status)) != "0"
		if failed != s.fails() || !match(s.output, lines(string(output))) {
			ts.Fatalf("$ %s\nprinted, with status %s:\n%s\ninstead of:\n%s\n",
				s.command, strings.TrimSpace(string(status)), output, strings.Join(s.output, "\n"))
		}
		ts.Logf("$ %s\n%s", s.command, output)
	}
}

// lines splits output into lines, without empty ones at the end: a block of a
// page can't show them.
func lines(output string) []string {
	output = strings.TrimRight(output, "\n")
	if output == "" {
		return nil
	}
	return strings.Split(output, "\n")
}

// recoveryKey is what a recovery key looks like.
var recoveryKey = regexp.MustCompile(`\b[A-Z2-7]{4}(-[A-Z2-7]{4}){7}\b`)

// kinds are the words that differ from run to run.
var kinds = []struct {
	pattern     *regexp.Regexp
	placeholder string
}{
	{recoveryKey, "KEY"},
	{regexp.MustCompile(`\b[0-9a-f]{16,}\b`), "HEX"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d+)?Z| \d\d:\d\d(:\d\d)?)`), "DATE"},
}

func generalize(line string) string {
	for _, kind := range kinds {
		line = kind.pattern.ReplaceAllLiteralString(line, kind.placeholder)
	}
	return line
}

// match compares output with what is written.
func match(written, output []string) bool {
	for len(written) > 0 && strings.TrimSpace(written[len(written)-1]) == "" {
		written = written[:len(written)-1]
	}
	if len(written) == 0 {
		return len(output) == 0
	}
	if written[0] == "..." {
		for skip := range len(output) + 1 {
			if match(written[1:], output[skip:]) {
				return true
			}
		}
		return false
	}
	return len(output) > 0 && matchLine(written[0], output[0]) && match(written[1:], output[1:])
}

func matchLine(written, output string) bool {
	pieces := strings.Split(generalize(written), "...")
	for i := range pieces {
		pieces[i] = regexp.QuoteMeta(pieces[i])
	}
	pattern := regexp.MustCompile("^" + strings.Join(pieces, ".*") + "$")
	return pattern.MatchString(generalize(output))
}

func TestMatch(t *testing.T) {
	for _, test := range []struct {
		written, output string
		same            bool
	}{
		{"", "", true},
		{"a", "a", true},
		{"a", "a ", false},
		{"a", "b", false},
		{"a\nb", "a", false},
		{"a", "a\nb", false},
		{"a ... c", "a b c", true},
		{"a ... c", "a b d", false},
		{"a\n...\nc", "a\nc", true},
		{"a\n...\nc", "a\nb\nb\nc", true},
		{"a\n...", "a\nb", true},
		{"a\n...\nc", "a\nb", false},
		{"cluster 66770d7cd1f5522f114c0381e8fe93e1", "cluster 00000000d1f5522f114c0381e8fe93e1", true},
		{"cluster HEX", "cluster 00000000d1f5522f114c0381e8fe93e1", true},
		{"cluster HEX", "cluster none", false},
		{"LJRF-5NB4-BMPX-PAB2-CZVD-JRKL-XB6L-TF52", "PPXR-AHNU-ZWUQ-WODE-USI2-C2TZ-QI4N-7UFI", true},
		{"LJRF-5NB4", "PPXR-AHNU", false},
		{"  18  2026-10-29 01:16  x", "  18  2031-01-02 23:59  x", true},
		{"18 2026-10-29 01:16 x", "19 2026-10-29 01:16 x", false},
	} {
		if match(lines(test.written), lines(test.output)) != test.same {
			t.Errorf("written %q, output %q: want %v", test.written, test.output, test.same)
		}
	}
}

func TestExtract(t *testing.T) {
	page := "Text\n```console\n$ a\nout\n```\n```sh\nother\n```\n<!-- console\n$ hidden\n-->\n"
	command, session, err := extract(page)
	if want := "$ a\nout\n$ hidden\n"; err != nil || session != want || command != "console" {
		t.Errorf("%s, %q, %v; want %q", command, session, err, want)
	}
	command, session, err = extract("<!-- network -->\n```console background\n$ a \\\n> b\nout\n```\n```console\n$ c\n```\n")
	if want := "& a \\\n> b\nout\n$ c\n"; err != nil || session != want || command != "network" {
		t.Errorf("%s, %q, %v; want %q", command, session, err, want)
	}
	for _, bad := range []string{"```console\n$ a\n", "```sh\n$ untested\n```\n"} {
		if _, _, err := extract(bad); err == nil {
			t.Errorf("%q has no error", bad)
		}
	}
	steps, err := parse("# A remark\n$ a \\\n> b\nout\n\n# A remark\n$ c\npcctl: no\n\n# A remark\n& d\nout\n")
	if err != nil || len(steps) != 3 || steps[1].background || !steps[2].background || steps[2].command != "d" || steps[0].command != "a \\\nb" || steps[0].fails() || !steps[1].fails() {
		t.Errorf("%+v, %v", steps, err)
	}
}
