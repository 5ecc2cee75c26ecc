package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/urfave/cli/v3"
)

// JSONFlag is the --json flag of every command that prints a result.
func JSONFlag() cli.Flag {
	return &cli.BoolFlag{
		Name:        "json",
		Usage:       "Print the result as JSON",
		HideDefault: true,
	}
}

// WriteJSON writes one JSON document on a line of its own. Nothing in it can drive a
// terminal: what JSON itself leaves as it is of such characters is escaped too.
func WriteJSON(w io.Writer, document any) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(document); err != nil {
		return &OutputError{err}
	}
	if _, err := w.Write(escapeJSON(text.Bytes())); err != nil {
		return &OutputError{err}
	}
	return nil
}

// escapeJSON escapes in JSON on one line what a terminal would act on. All of that is in
// strings.
func escapeJSON(line []byte) []byte {
	content, end := bytes.CutSuffix(line, []byte("\n"))
	if bytes.IndexFunc(content, needsEscape) < 0 {
		return line
	}
	var escaped []byte
	for len(content) > 0 {
		r, size := utf8.DecodeRune(content)
		if needsEscape(r) {
			for _, unit := range utf16.AppendRune(nil, r) {
				escaped = fmt.Appendf(escaped, `\u%04x`, unit)
			}
		} else {
			escaped = append(escaped, content[:size]...)
		}
		content = content[size:]
	}
	if end {
		escaped = append(escaped, '\n')
	}
	return escaped
}

// Printable returns a name for people to read: characters that a terminal
// would act on, or that would break a listing's lines, are written as Go
// escapes (\n, \x1b). A name that needs none is returned as it is.
func Printable(name string) string {
	if strings.IndexFunc(name, needsEscape) < 0 && utf8.ValidString(name) {
		return name
	}
	var b strings.Builder
	for i := 0; i < len(name); {
		r, size := utf8.DecodeRuneInString(name[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, name[i])
		case needsEscape(r):
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		default:
			b.WriteString(name[i : i+size])
		}
		i += size
	}
	return b.String()
}

// LogText returns the text of a log's line for people to read: as Printable does, but
// tabs, which indent the stacks of a crash, stay.
func LogText(text string) string {
	fields := strings.Split(text, "\t")
	for i, field := range fields {
		fields[i] = Printable(field)
	}
	return strings.Join(fields, "\t")
}

// Line returns a message for people to read on one line. Much of it can come from
// elsewhere: names of files, and what a location says.
func Line(message string) string {
	lines := strings.FieldsFunc(message, func(r rune) bool { return r == '\n' || r == '\r' })
	return Printable(strings.Join(lines, "; "))
}

// needsEscape tells letters, signs and spaces from characters that control a
// terminal or can't be seen.
func needsEscape(r rune) bool {
	return !unicode.IsPrint(r) && r != '\u00a0' && r != '\u3000'
}
