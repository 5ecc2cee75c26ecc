package blob

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxSpec bounds a list of locations, in bytes.
	maxSpec = 64 << 10
	// maxLocations bounds the locations in a list, and the parts of an
	// erasure-coded set: a shard's number is one byte.
	maxLocations = 255
)

// Scheme says which kind of location a Spec describes.
type Scheme uint8

// The kinds of locations. The zero Scheme is none of them.
const (
	// SchemeDir is a directory on the machine that runs the program.
	SchemeDir Scheme = iota + 1
	// SchemeS3 is an S3-compatible bucket, or a prefix in one.
	SchemeS3
	// SchemeNode is a replica on an enrolled node's disk.
	SchemeNode
	// SchemeErasure is an erasure-coded set over several other locations.
	SchemeErasure
)

// String returns "dir", "s3", "node" or "ec".
func (s Scheme) String() string {
	switch s {
	case SchemeDir:
		return "dir"
	case SchemeS3:
		return "s3"
	case SchemeNode:
		return "node"
	case SchemeErasure:
		return "ec"
	}
	return fmt.Sprintf("scheme(%d)", uint8(s))
}

// Spec is a storage location as given in --repo, parsed. Which fields are set
// depends on the scheme.
type Spec struct {
	Scheme Scheme
	// Dir is the directory's path, as typed.
	Dir string
	// S3 describes the bucket.
	S3 S3Spec
	// Node is the node's name.
	Node string
	// Data is an erasure-coded set's K: how many shards rebuild a blob.
	// 1 <= Data < len(Parts).
	Data int
	// Parts are an erasure-coded set's locations, one a shard.
	Parts []Spec

	text string
}

// String returns the location as it was typed. It holds no secrets: ParseSpec
// refuses a location that does.
func (s Spec) String() string { return s.text }

// ParseList parses a comma-separated list of locations, as in --repo. Besides
// what ParseSpec refuses it refuses an empty list, an empty entry and a location
// that is given twice, in an erasure-coded set or beside it: its blobs would
// count as two copies and be one.
func ParseList(list string) ([]Spec, error) {
	if len(list) > maxSpec {
		return nil, fmt.Errorf("the list of locations is longer than %d bytes", maxSpec)
	}
	if list == "" {
		return nil, errors.New("the list of locations is empty")
	}
	entries := strings.Split(list, ",")
	if len(entries) > maxLocations {
		return nil, fmt.Errorf("the list has %d locations; %d is the most", len(entries), maxLocations)
	}
	specs := make([]Spec, len(entries))
	for i, text := range entries {
		if text == "" {
			return nil, fmt.Errorf("location %d of the list is empty: there is a comma too many", i+1)
		}
		var err error
		if specs[i], err = ParseSpec(text); err != nil {
			return nil, err
		}
	}
	return specs, checkDistinct(specs, map[string]string{})
}

// ParseSpec parses one location:
//
//	/path/to/dir, ./dir                 a directory
//	s3://BUCKET[/PREFIX][?OPTIONS]      a bucket
//	node://NAME                         a node's disk
//	ec:K:LOC;LOC;...                    an erasure-coded set of the others
//
// It looks at the text only, not at what it names. Its errors don't repeat what
// could be a secret that somebody put into the location by mistake.
func ParseSpec(text string) (Spec, error) {
	spec, err := parseSpec(text)
	if err != nil {
		return Spec{}, fmt.Errorf("location %s: %w", Redact(text), err)
	}
	if spec.Scheme == SchemeErasure {
		if err := checkDistinct(spec.Parts, map[string]string{}); err != nil {
			return Spec{}, fmt.Errorf("location %s: %w", Redact(text), err)
		}
	}
	return spec, nil
}

func parseSpec(text string) (Spec, error) {
	if err := checkText(text); err != nil {
		return Spec{}, err
	}
	word, rest, colon := strings.Cut(text, ":")
	if !colon || len(word) <= 1 || strings.ContainsAny(word, `/\`) {
		// A single letter before the colon is a drive on Windows.
		return parseDir(text)
	}
	spec := Spec{text: text}
	var err error
	after, slashes := strings.CutPrefix(rest, "//")
	switch {
	case word == "s3" && slashes:
		spec.Scheme = SchemeS3
		spec.S3, err = parseS3(after)
	case word == "node" && slashes:
		spec.Scheme = SchemeNode
		spec.Node, err = parseNode(after)
	case word == "ec":
		spec.Scheme = SchemeErasure
		spec.Data, spec.Parts, err = parseErasure(rest)
	case slashes, isSchemeWord(word):
		err = errors.New("it is not a kind of location; there are /DIR, s3://BUCKET/PREFIX, node://NAME and ec:K:LOC;LOC;... (a directory with such a name is given as ./NAME)")
	default:
		return parseDir(text)
	}
	return spec, err
}

// isSchemeWord reports whether the word before a colon looks like a mistyped
// kind of location rather than the beginning of a directory's name.
func isSchemeWord(word string) bool {
	switch strings.ToLower(word) {
	case "s3", "node", "ec", "file", "dir":
		return true
	}
	return false
}

// checkText refuses what could not be shown on one line of a terminal, and
// blanks at the ends, which are a slip of the keyboard and would name another
// directory than the one meant.
func checkText(text string) error {
	switch {
	case text == "":
		return errors.New("it is empty")
	case len(text) > maxSpec:
		return fmt.Errorf("it is longer than %d bytes", maxSpec)
	case !utf8.ValidString(text):
		return errors.New("it is not valid UTF-8")
	case strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }):
		return errors.New("it has a character that can't be printed")
	case strings.TrimSpace(text) != text:
		return errors.New("it begins or ends with a blank; take the blank out")
	}
	return nil
}

func parseDir(text string) (Spec, error) {
	if text == "~" || strings.HasPrefix(text, "~/") {
		return Spec{}, errors.New("the shell doesn't replace ~ there; write $HOME, or ./~ for a directory of that name")
	}
	return Spec{Scheme: SchemeDir, Dir: text, text: text}, nil
}

func parseNode(name string) (string, error) {
	const longest = 63
	valid := name != "" && len(name) <= longest && isAlphanumeric(name[0])
	for i := range len(name) {
		c := name[i]
		valid = valid && (isAlphanumeric(c) || c == '-' || c == '_' || c == '.')
	}
	if !valid {
		return "", fmt.Errorf("a node's name has letters, digits, '-', '_' and '.', begins with a letter or digit and has at most %d characters, as in node://home-1", longest)
	}
	return name, nil
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

func parseErasure(text string) (data int, parts []Spec, err error) {
	number, list, ok := strings.Cut(text, ":")
	if !ok {
		return 0, nil, errors.New("an erasure-coded set is ec:K:LOC;LOC;..., such as ec:2:/a;/b;/c")
	}
	entries := strings.Split(list, ";")
	if len(entries) > maxLocations {
		return 0, nil, fmt.Errorf("it has %d parts; %d is the most", len(entries), maxLocations)
	}
	// No sign and no leading zero: the number is written one way only.
	data, err = strconv.Atoi(number)
	if err != nil || number != strconv.Itoa(data) || data < 1 || data >= len(entries) {
		return 0, nil, fmt.Errorf("the K of ec:K:LOC;LOC;... must be at least 1 and less than its %d parts (quote the location in the shell, which ends a command at ';')", len(entries))
	}
	parts = make([]Spec, len(entries))
	for i, entry := range entries {
		if strings.HasPrefix(entry, "ec:") {
			return 0, nil, fmt.Errorf("part %d is an erasure-coded set itself; they can't be nested", i+1)
		}
		if parts[i], err = parseSpec(entry); err != nil {
			return 0, nil, fmt.Errorf("part %d (%s): %w", i+1, Redact(entry), err)
		}
	}
	return data, parts, nil
}

// checkDistinct refuses a place that occurs twice among the specs and their
// parts. It compares what is typed: two names for one place, such as through a
// symbolic link, only show once it is opened.
func checkDistinct(specs []Spec, seen map[string]string) error {
	for _, spec := range specs {
		if spec.Scheme == SchemeErasure {
			if err := checkDistinct(spec.Parts, seen); err != nil {
				return err
			}
			continue
		}
		place := spec.place()
		if earlier, ok := seen[place]; ok {
			if earlier == spec.text {
				return fmt.Errorf("location %s is given twice", spec)
			}
			return fmt.Errorf("locations %s and %s are the same place", earlier, spec)
		}
		seen[place] = spec.text
	}
	return nil
}

// place returns a text that is the same for two Specs of the same place.
func (s Spec) place() string {
	switch s.Scheme {
	case SchemeS3:
		return "s3 " + s.S3.place()
	case SchemeNode:
		return "node " + s.Node
	}
	path, err := filepath.Abs(s.Dir)
	if err != nil {
		path = filepath.Clean(s.Dir)
	}
	return "dir " + path
}

// Redact returns a location's text for an error message: one line, of bounded
// length, without what could be credentials that were put into it by mistake.
func Redact(text string) string {
	const shown = 120
	if rest, ok := strings.CutPrefix(text, "ec:"); ok {
		// Its parts are named one by one.
		number, _, _ := strings.Cut(rest, ":")
		text = "ec:" + number + ":..."
	}
	if i := strings.IndexByte(text, '?'); i >= 0 {
		text = text[:i] + "?..."
	}
	if scheme, rest, ok := strings.Cut(text, "://"); ok {
		if i := strings.LastIndexByte(rest, '@'); i >= 0 {
			text = scheme + "://...@" + rest[i+1:]
		} else if host, _, _ := strings.Cut(rest, "/"); strings.Contains(host, ":") {
			text = scheme + "://..."
		}
	}
	if len(text) > shown {
		text = strings.ToValidUTF8(text[:shown], "") + "..."
	}
	if quoted := strconv.Quote(text); quoted != `"`+text+`"` || text == "" {
		return quoted
	}
	return text
}
