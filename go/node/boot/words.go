package boot

import (
	"strings"

	"powercloud.unidatum.com/go/sys/pstore"
)

const (
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

// wordsToSave says how pcd ended and what it said last, in lines of the kernel log's form.
// There is room for little. Of a crash that is its beginning, since the stacks of every
// goroutine follow; otherwise it is the end.
func wordsToSave(outcome, text string) string {
	var lines []string
	crashed := false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, codeLine) {
			continue
		}
		for _, begin := range crashBegins {
			if strings.HasPrefix(line, begin) {
				lines, crashed = nil, true
			}
		}
		lines = append(lines, wordsLine(line))
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
