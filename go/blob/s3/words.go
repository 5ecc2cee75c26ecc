package s3

import (
	"strings"
	"unicode"
)

// printable returns a service's own words for a line of an error message: of
// bounded length, without line breaks or what else could disturb a terminal.
func printable(words string) string {
	const ellipsis = "..."
	var line strings.Builder
	for word := range strings.FieldsFuncSeq(words, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
		if line.Len()+1+len(word) > maxWords {
			if line.Len() == 0 {
				line.WriteString(strings.ToValidUTF8(word[:maxWords-len(ellipsis)], ""))
			}
			line.WriteString(ellipsis)
			break
		}
		if line.Len() > 0 {
			line.WriteByte(' ')
		}
		line.WriteString(word)
	}
	return strings.ToValidUTF8(line.String(), "")
}
