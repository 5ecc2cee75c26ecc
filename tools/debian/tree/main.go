// Tree copies files into one folder.
//
//	tree -output FOLDER -list FILE
//
// Each line of the list is TARGET=SOURCE: a path in the folder, and the file
// to copy there with its mode. Sources that are links to one file become hard
// links to one copy, so that a library that is known by three names takes the
// space of one.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"powercloud.unidatum.com/tools/filecopy"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "tree:", err)
		os.Exit(1)
	}
}

// run makes the folder that the arguments describe.
func run(arguments []string) error {
	flags := flag.NewFlagSet("tree", flag.ContinueOnError)
	output := flags.String("output", "", "the `FOLDER` to fill")
	list := flags.String("list", "", "the `FILE` with a line TARGET=SOURCE for each file")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if flags.NArg() > 0 || *output == "" || *list == "" {
		return errors.New("it takes -output FOLDER and -list FILE, and nothing else")
	}
	content, err := os.ReadFile(*list)
	if err != nil {
		return fmt.Errorf("read the list of files: %w", err)
	}
	done := map[string]string{}
	for line := range strings.Lines(string(content)) {
		target, source, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if !ok || !fs.ValidPath(target) || target == "." {
			return fmt.Errorf("the list has %q, where a line is TARGET=SOURCE with a relative TARGET", line)
		}
		if err := add(filepath.Join(*output, filepath.FromSlash(target)), source, done); err != nil {
			return fmt.Errorf("put %s into the folder: %w", target, err)
		}
	}
	return nil
}

// add copies a file, or links it to the copy of the same file that is done.
func add(target, source string, done map[string]string) error {
	original, err := filepath.EvalSymlinks(source)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	if earlier, ok := done[original]; ok {
		return os.Link(earlier, target)
	}
	if err := filecopy.Copy(target, original, 0); err != nil {
		return err
	}
	done[original] = target
	return nil
}
