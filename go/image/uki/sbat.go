package uki

import (
	"bytes"
	"debug/pe"
	"fmt"
	"strings"
)

// sbatHeader is the line that an SBAT section begins with (shim's SBAT.md).
const sbatHeader = "sbat,1,SBAT Version,sbat,1,https://github.com/rhboot/shim/blob/main/SBAT.md"

// sbatGeneration is the number of this system's component. It goes up when all
// images before a fix must be revoked at once.
const sbatGeneration = 1

// mergeSBAT returns the SBAT section of an image: what those of the stub and the
// kernel say, and a line of this system's own.
func mergeSBAT(version string, programs ...[]byte) ([]byte, error) {
	lines := []string{sbatHeader}
	seen := map[string]bool{sbatHeader: true}
	for _, program := range programs {
		for _, line := range strings.Split(readSBAT(program), "\n") {
			component, _, _ := strings.Cut(line, ",")
			if line == "" || component == "sbat" || seen[line] {
				continue
			}
			seen[line] = true
			lines = append(lines, line)
		}
	}
	lines = append(lines, fmt.Sprintf("powercloud,%d,PowerCloud,powercloud,%s,https://powercloud.unidatum.com", sbatGeneration, version))
	merged := []byte(strings.Join(lines, "\n") + "\n")
	if len(merged) > maxSBAT {
		return nil, fmt.Errorf("the section .sbat has %d bytes, more than %d", len(merged), maxSBAT)
	}
	return merged, nil
}

// readSBAT returns what a program of the same build says of itself for SBAT, or
// nothing.
func readSBAT(program []byte) string {
	content := sbatSection(program)
	if content == nil {
		// The stub for arm64 was made with a linker that knew no such sections, and
		// has the text after the last one.
		at := bytes.LastIndex(program, []byte("\x00"+sbatHeader+"\n"))
		if at < 0 {
			return ""
		}
		content = program[at+1:]
	}
	text, _, _ := bytes.Cut(content, []byte{0})
	return string(text)
}

// sbatSection returns the SBAT section of a program, or nil.
func sbatSection(program []byte) []byte {
	file, err := pe.NewFile(bytes.NewReader(program))
	if err != nil {
		return nil
	}
	s := file.Section(sectionSBAT)
	if s == nil {
		return nil
	}
	content, err := s.Data()
	if err != nil {
		return nil
	}
	return content[:min(len(content), int(s.VirtualSize))]
}
