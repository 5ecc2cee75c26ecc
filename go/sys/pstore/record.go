// Package pstore reads what the kernel saved of its log when it last panicked,
// from the file system that the kernel shows it in, and makes room for the next.
//
// A back end stores a dump as one file (ramoops) or, where space comes in small
// pieces (EFI variables), as several. Each begins with a line such as
// "Panic#2 Part3": why it was saved, which dump it was since that kernel
// started, and which part; part 1 is the end of the log. See the kernel's
// Documentation/admin-guide/pstore-blk.rst and fs/pstore/platform.c.
//
// Firmware holds the parts. What it gives back is taken for text from a
// stranger: it is bounded, and control characters are replaced.
package pstore

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// Path is where the file system is mounted.
	Path = "/sys/fs/pstore"
	// maxFiles is how many files are looked at.
	maxFiles = 1024
	// maxPart is how many bytes of one file are read.
	maxPart = 1 << 20
	// maxDump is how many bytes of one dump are kept: its end.
	maxDump = 256 << 10
)

// efiPrefix begins the names of files that are EFI variables.
const efiPrefix = "dmesg-efi"

// Dump is the log that one event has left.
type Dump struct {
	// Reason is the kernel's word for why, such as "Panic" or "Oops"; "" when
	// the dump doesn't say.
	Reason string
	// Count numbers the dumps of one boot, from 1.
	Count int
	// ID tells dumps of different boots apart. It grows with time where the
	// back end's identifiers do; EFI's do.
	ID uint64
	// Text is the log's end, oldest line first, in plain lines.
	Text string
	// Files are the names of the files that held it.
	Files []string
}

// file is one file of the store, parsed.
type file struct {
	name   string
	id     uint64
	reason string
	count  int
	part   int
	text   string
}

// parse reads one file of the store. ok is false for a file that holds no log,
// such as one of the console or of user messages.
func parse(name string, content []byte) (f file, ok bool) {
	rest, ok := strings.CutPrefix(name, "dmesg-")
	if !ok {
		return file{}, false
	}
	f = file{name: name, part: 1}
	rest = strings.TrimSuffix(rest, ".enc.z")
	if dash := strings.LastIndexByte(rest, '-'); dash >= 0 {
		f.id, _ = strconv.ParseUint(rest[dash+1:], 10, 64)
	}
	if part := f.id / 1000 % 100; strings.HasPrefix(name, efiPrefix) && part > 0 {
		f.part = int(part)
	}
	if strings.HasSuffix(name, ".enc.z") {
		// The kernel couldn't decompress it, and neither can anybody else.
		f.text = "(a part of the log was damaged)\n"
		return f, true
	}
	text := plain(content)
	head, body, _ := strings.Cut(text, "\n")
	var count, part int
	reason, numbers, found := strings.Cut(head, "#")
	if found {
		if n, err := fmt.Sscanf(numbers, "%d Part%d", &count, &part); err == nil && n == 2 && word(reason) && count > 0 && part > 0 {
			f.reason, f.count, f.part, text = reason, count, part, body
		}
	}
	f.text = text
	return f, true
}

// word tells whether a reason looks like the kernel's: letters and blanks.
func word(s string) bool {
	return s != "" && len(s) < 32 && !strings.ContainsFunc(s, func(r rune) bool { return r != ' ' && !unicode.IsLetter(r) })
}

// plain makes text of what came out of the store.
func plain(content []byte) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == utf8.RuneError || unicode.IsControl(r):
			return '?'
		}
		return r
	}, strings.ToValidUTF8(string(content), "?"))
}

// maxPause is how long may pass, in seconds, between the writing of two parts of one
// dump: firmware writes to flash memory slowly.
const maxPause = 60

// event is what the parts of one dump have in common.
type event struct {
	count  int
	reason string
	// store is the file's name where a dump is one file, and "" for EFI's.
	store string
}

// moment returns when a part was written, in seconds since 1970, and what it is a part
// of. EFI's identifier is (seconds * 100 + part) * 1000 + count. The kernel takes the
// time anew for each part. Other back ends number their files, one a dump.
func (f file) moment() (uint64, event) {
	e := event{count: f.count, reason: f.reason}
	if !strings.HasPrefix(f.name, efiPrefix) {
		e.store = f.name
		return f.id, e
	}
	if f.count == 0 {
		e.count = int(f.id % 1000)
	}
	return f.id / 100_000, e
}

// assembly is a dump that is being put together.
type assembly struct {
	dump  Dump
	parts []file
	// last is when its last part was written.
	last uint64
}

// assemble makes dumps of files, oldest first. Part 1 is written first.
func assemble(files []file) []Dump {
	slices.SortFunc(files, func(a, b file) int {
		first, _ := a.moment()
		second, _ := b.moment()
		return cmp.Or(cmp.Compare(first, second), cmp.Compare(a.part, b.part), cmp.Compare(a.name, b.name))
	})
	var all []*assembly
	latest := map[event]*assembly{}
	for _, f := range files {
		at, e := f.moment()
		a := latest[e]
		if a == nil || f.part <= a.parts[len(a.parts)-1].part || at-a.last > maxPause {
			a = &assembly{dump: Dump{Reason: e.reason, Count: e.count, ID: at}}
			all, latest[e] = append(all, a), a
		}
		a.parts, a.last = append(a.parts, f), at
	}
	var dumps []Dump
	for _, a := range all {
		var text strings.Builder
		for _, p := range slices.Backward(a.parts) {
			text.WriteString(p.text)
			a.dump.Files = append(a.dump.Files, p.name)
		}
		a.dump.Text = end(text.String(), maxDump)
		dumps = append(dumps, a.dump)
	}
	slices.SortStableFunc(dumps, func(a, b Dump) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Count, b.Count))
	})
	return dumps
}

// end returns the last lines of a text that fit into a number of bytes.
func end(text string, size int) string {
	if len(text) <= size {
		return text
	}
	text = text[len(text)-size:]
	if _, rest, found := strings.Cut(text, "\n"); found {
		return rest
	}
	return strings.ToValidUTF8(text, "")
}

// Summary returns what people look for first: the kernel's line that says why it
// died, or the last line, without the time stamp.
func (d Dump) Summary() string {
	last := ""
	for line := range strings.Lines(d.Text) {
		line = withoutPrefix(line)
		if strings.HasPrefix(line, "Kernel panic") {
			return line
		}
		if line != "" {
			last = line
		}
	}
	return last
}

// withoutPrefix takes the level and the time off a line of the kernel's log:
// "<0>[    1.234567] text".
func withoutPrefix(line string) string {
	line = strings.TrimSpace(line)
	if strings.HasPrefix(line, "<") {
		if _, rest, found := strings.Cut(line, ">"); found {
			line = rest
		}
	}
	if strings.HasPrefix(line, "[") {
		if _, rest, found := strings.Cut(line, "] "); found {
			line = rest
		}
	}
	return strings.TrimSpace(line)
}
