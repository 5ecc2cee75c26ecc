// Layer writes a layer of a container image: a tar file, compressed with gzip,
// whose bytes follow from the files in it alone. Owner, group and times are 0.
//
//	layer -output FILE [-file PATH=SOURCE]... [-executable PATH=SOURCE]...
package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "layer:", err)
		os.Exit(1)
	}
}

// entry is a file of the layer.
type entry struct {
	source string
	mode   int64
}

// run writes the layer that the arguments describe.
func run(arguments []string) error {
	flags := flag.NewFlagSet("layer", flag.ContinueOnError)
	output := flags.String("output", "", "the `FILE` to write")
	entries := map[string]entry{}
	for name, mode := range map[string]int64{"file": 0o644, "executable": 0o755} {
		flags.Func(name, "a file to put in, as `PATH=SOURCE`", func(value string) error {
			target, source, ok := strings.Cut(value, "=")
			// A path in a tar file has no slash at its beginning, and is
			// written in one way only.
			if !ok || !fs.ValidPath(target) || target == "." {
				return errors.New("it must be PATH=SOURCE, with a relative PATH")
			}
			if _, ok := entries[target]; ok {
				return fmt.Errorf("%s is there already", target)
			}
			entries[target] = entry{source, mode}
			return nil
		})
	}
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if flags.NArg() > 0 || *output == "" {
		return errors.New("it takes -output FILE, and -file PATH=SOURCE and -executable PATH=SOURCE any number of times")
	}
	file, err := os.Create(*output)
	if err != nil {
		return fmt.Errorf("write a layer: %w", err)
	}
	if err := errors.Join(write(file, entries), file.Close()); err != nil {
		return fmt.Errorf("write a layer: %w", err)
	}
	return nil
}

// write writes the layer.
func write(to io.Writer, entries map[string]entry) error {
	compressed, err := gzip.NewWriterLevel(to, gzip.BestCompression)
	if err != nil {
		return err
	}
	out := tar.NewWriter(compressed)
	folders := map[string]bool{".": true}
	for _, target := range slices.Sorted(maps.Keys(entries)) {
		if err := addFolders(out, path.Dir(target), entries, folders); err != nil {
			return err
		}
		if err := add(out, target, entries[target]); err != nil {
			return err
		}
	}
	return errors.Join(out.Close(), compressed.Close())
}

// addFolders adds a folder and those above it, once each.
func addFolders(out *tar.Writer, folder string, entries map[string]entry, done map[string]bool) error {
	if done[folder] {
		return nil
	}
	if _, ok := entries[folder]; ok {
		return fmt.Errorf("%s is both a file and a folder", folder)
	}
	if err := addFolders(out, path.Dir(folder), entries, done); err != nil {
		return err
	}
	done[folder] = true
	return out.WriteHeader(&tar.Header{Name: folder + "/", Typeflag: tar.TypeDir, Mode: 0o755, ModTime: time.Unix(0, 0)})
}

func add(out *tar.Writer, target string, e entry) error {
	file, err := os.Open(e.source)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", e.source)
	}
	err = out.WriteHeader(&tar.Header{Name: target, Typeflag: tar.TypeReg, Size: info.Size(), Mode: e.mode, ModTime: time.Unix(0, 0)})
	if err != nil {
		return err
	}
	_, err = io.Copy(out, file)
	return err
}
