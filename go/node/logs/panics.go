package logs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"powercloud.unidatum.com/go/sys/pstore"
)

// copyPanics appends the panics, and crashes of pcd's, that PID 1 has found and that the
// ring hasn't got yet: the store has them until a boot has proved good.
func copyPanics(r *ring, dumps []pstore.Dump) error {
	known := r.dumps()
	for _, d := range dumps {
		digest, err := digestOf(d)
		if err != nil {
			return err
		}
		if slices.Contains(known, digest) {
			continue
		}
		var lines []byte
		for _, record := range panicRecords(d) {
			line, err := entry{Record: record}.encode()
			if err != nil {
				return err
			}
			lines = append(lines, line.bytes...)
		}
		if err := r.save(kindOf(d), digest, lines); err != nil {
			return err
		}
		known = append(known, digest)
	}
	return nil
}

// kindOf returns the kind of the segment that a dump is kept in.
func kindOf(d pstore.Dump) kind {
	if d.Reason == pstore.Ended {
		return kindCrash
	}
	return kindPanic
}

// digestOf tells one panic from another.
func digestOf(d pstore.Dump) (string, error) {
	b, err := json.Marshal(d)
	if err != nil {
		return "", fmt.Errorf("write down a panic: %w", err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16]), nil
}

// panicRecords returns a panic as records, after one that says what it is. All have
// the time when it was saved.
func panicRecords(d pstore.Dump) []Record {
	at, known := d.Written()
	reason := "for no stated reason"
	if d.Reason != "" {
		reason = "after: " + strings.ToLower(d.Reason)
	}
	if !known {
		at = time.Time{}
	}
	text := "an earlier boot ended badly; the end of the kernel's log was saved " + reason
	if d.Reason == pstore.Ended {
		text = "pcd had crashed in an earlier boot; its last words were saved"
	}
	records := []Record{{Time: at, Level: Critical, Source: SourceLog, Text: text}}
	for line := range strings.Lines(d.Text) {
		record := panicRecord(strings.TrimRight(line, "\r\n"))
		record.Time = at
		records = append(records, record)
	}
	return records
}

// panicRecord reads a line of a panic: "<6>[    1.234567] text", with more between the
// bracket and the text where the kernel says who called it. Others are as they are.
func panicRecord(line string) Record {
	record := Record{Level: Info, Source: SourceKernel, Text: line}
	rest, found := strings.CutPrefix(line, "<")
	if !found {
		return record
	}
	number, rest, found := strings.Cut(rest, ">")
	prefix, err := strconv.ParseUint(number, 10, 16)
	if !found || err != nil {
		return record
	}
	record.Level, record.Text = Level(prefix&7), rest
	if inner, found := strings.CutPrefix(rest, "["); found {
		stamp, text, found := strings.Cut(inner, "] ")
		if uptime, err := time.ParseDuration(strings.TrimSpace(stamp) + "s"); found && err == nil && uptime >= 0 {
			record.Uptime, record.Text = uptime, text
		}
	}
	if prefix>>3 != 0 {
		record.Source = SourceOther
		if tag, text, found := strings.Cut(record.Text, ": "); found && isName(tag) {
			record.Source, record.Text = tag, text
			if record.Level == Debug {
				record.Level, record.Text = logged(text)
			}
		}
	}
	return record
}
