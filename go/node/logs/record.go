package logs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"powercloud.unidatum.com/go/sys/kernellog"
)

const (
	// maxText is how many bytes of a record's text are kept. The kernel's records are
	// shorter. As JSON a byte can take six.
	maxText = 8 << 10
	// maxSource is how many bytes the name of a source has at most.
	maxSource = 32
)

// Level is how urgent a record is: syslog's numbers, 0 the most urgent.
type Level uint8

// The levels.
const (
	Emergency Level = iota
	Alert
	Critical
	Error
	Warning
	Notice
	Info
	Debug
)

// levels are the levels' names.
var levels = [...]string{"emergency", "alert", "critical", "err", "warning", "notice", "info", "debug"}

// String returns the level's name, such as "warning".
func (l Level) String() string {
	if int(l) < len(levels) {
		return levels[l]
	}
	return fmt.Sprintf("level %d", uint8(l))
}

// MarshalText writes the level's name.
func (l Level) MarshalText() ([]byte, error) {
	if int(l) >= len(levels) {
		return nil, fmt.Errorf("there is no level %d", uint8(l))
	}
	return []byte(levels[l]), nil
}

// UnmarshalText reads a level's name.
func (l *Level) UnmarshalText(text []byte) error {
	for i, name := range levels {
		if string(text) == name {
			*l = Level(i)
			return nil
		}
	}
	return fmt.Errorf("there is no level %q", text)
}

// Sources that aren't services.
const (
	// SourceKernel is the kernel itself.
	SourceKernel = "kernel"
	// SourceDaemon is pcd.
	SourceDaemon = "pcd"
	// SourceStart is pcinit, the first process.
	SourceStart = "pcinit"
	// SourceOther is a program that doesn't say its name.
	SourceOther = "program"
	// SourceLog is the log itself, where it says what isn't in it.
	SourceLog = "log"
)

// Record is one entry of a node's log.
type Record struct {
	// Time is when it was written, by the clock that the node had when it copied the
	// record; zero where that isn't known.
	Time time.Time `json:"time,omitzero"`
	// Uptime is when it was written since the kernel started, in nanoseconds; 0 where
	// that isn't known.
	Uptime time.Duration `json:"uptime,omitempty"`
	Level  Level         `json:"level"`
	// Source is who wrote it: SourceKernel, or the name of a program.
	Source string `json:"source"`
	// Text is what it says, in valid UTF-8 of at most 8 KiB. It can hold line feeds and
	// what drives a terminal: whoever shows it has to escape it.
	Text string `json:"text"`
}

// entry is a record as the ring has it.
type entry struct {
	Record
	// Sequence is the number of the kernel's record plus one; 0 for what isn't the
	// kernel's.
	Sequence uint64 `json:"sequence,omitempty"`
	// stands is how many records this one tells the loss of, which counts if it is lost
	// itself; 0 for others.
	stands int
}

// line is an entry as it is written.
type line struct {
	bytes []byte
	// sequence is the entry's.
	sequence uint64
	// records is how many records are lost with it.
	records int
}

// encode returns the entry's line.
func (e entry) encode() (line, error) {
	// A clock that is very wrong must not stop the log.
	if e.Time = e.Time.UTC(); e.Time.Year() < 0 || e.Time.Year() > 9999 {
		e.Time = time.Time{}
	}
	e.Text = bounded(e.Text, maxText)
	e.Source = bounded(e.Source, maxSource)
	b, err := encodeLine(e)
	return line{bytes: b, sequence: e.Sequence, records: max(e.stands, 1)}, err
}

// encodeLine returns a line with a value as JSON.
func encodeLine(value any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, fmt.Errorf("write down a line of the log: %w", err)
	}
	return b.Bytes(), nil
}

// errLine is wrapped by errors for a line that isn't one of the log's.
var errLine = errors.New("a line of the log isn't understood")

// decodeEntry reads a line without its line feed.
func decodeEntry(line []byte) (entry, error) {
	var e entry
	if err := json.Unmarshal(line, &e); err != nil {
		return entry{}, fmt.Errorf("%w: %w", errLine, err)
	}
	if e.Source == "" || len(e.Source) > maxSource || len(e.Text) > maxText {
		return entry{}, fmt.Errorf("%w: a field is too long or missing", errLine)
	}
	return e, nil
}

// bounded returns text in valid UTF-8 with at most a number of bytes.
func bounded(text string, most int) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	if len(text) <= most {
		return text
	}
	end := most
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// fromKernel makes an entry of a record of the kernel's log. started is when the kernel
// started, by the clock of now.
func fromKernel(r kernellog.Record, started time.Time) entry {
	e := entry{Sequence: r.Sequence + 1, Record: Record{
		Time: started.Add(r.Uptime).UTC(), Uptime: r.Uptime, Level: Level(r.Priority & 7), Source: SourceKernel, Text: r.Text,
	}}
	if r.Facility != kernellog.Kernel {
		e.Source = SourceOther
		if tag, text, found := strings.Cut(r.Text, ": "); found && isName(tag) {
			e.Source, e.Text = tag, text
			if e.Level == Debug {
				// Programs write at this level to keep their lines off the consoles.
				e.Level, e.Text = logged(text)
			}
		}
	}
	return e
}

// isName tells whether a tag is a program's name.
func isName(tag string) bool {
	return tag != "" && len(tag) <= maxSource && !strings.ContainsFunc(tag, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-'
	})
}

// logged takes the time and the level off a line of slog's text handler: the record
// has its own time. Other lines, such as those of a crash, are as they are.
func logged(line string) (Level, string) {
	rest := line
	if strings.HasPrefix(rest, "time=") {
		_, rest, _ = strings.Cut(rest, " ")
	}
	if name, found := strings.CutPrefix(rest, "level="); found {
		name, text, _ := strings.Cut(name, " ")
		for _, l := range []struct {
			name  string
			level Level
		}{{"DEBUG", Debug}, {"INFO", Info}, {"WARN", Warning}, {"ERROR", Error}} {
			// Levels between these are written like "INFO+2".
			if tail, found := strings.CutPrefix(name, l.name); found && (tail == "" || tail[0] == '+' || tail[0] == '-') {
				return l.level, text
			}
		}
	}
	return Info, line
}

// note is the record in which the log itself says something that is amiss.
func note(now time.Time, format string, values ...any) Record {
	return Record{Time: now.UTC(), Level: Warning, Source: SourceLog, Text: fmt.Sprintf(format, values...)}
}

// lost is the entry that tells of the loss of a number of records.
func lost(now time.Time, format string, number int) entry {
	return entry{Record: note(now, format, number), stands: number}
}
