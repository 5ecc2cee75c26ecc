package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestLayer(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "source")
	if err := os.WriteFile(source, []byte("content"), 0o400); err != nil {
		t.Fatal(err)
	}
	var layers [][]byte
	for i, arguments := range [][]string{
		{"-executable", "usr/bin/a=" + source, "-file", "etc/b=" + source},
		{"-file", "etc/b=" + source, "-executable", "usr/bin/a=" + source},
	} {
		// When the source was written must make no difference.
		if err := os.Chtimes(source, time.Time{}, time.Unix(int64(i)*1e9, 0)); err != nil {
			t.Fatal(err)
		}
		output := filepath.Join(dir, fmt.Sprint(i))
		if err := run(append(arguments, "-output", output)); err != nil {
			t.Fatal(err)
		}
		layer, err := os.ReadFile(output)
		if err != nil {
			t.Fatal(err)
		}
		layers = append(layers, layer)
	}
	if !bytes.Equal(layers[0], layers[1]) {
		t.Error("the same files gave other bytes")
	}
	want := []string{"etc/ 755 ", "etc/b 644 content", "usr/ 755 ", "usr/bin/ 755 ", "usr/bin/a 755 content"}
	if got := listing(t, layers[0]); !slices.Equal(got, want) {
		t.Errorf("the layer has %q, want %q", got, want)
	}
}

// listing describes what is in a layer.
func listing(t *testing.T, layer []byte) []string {
	t.Helper()
	unzipped, err := gzip.NewReader(bytes.NewReader(layer))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return lines
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		if header.Uid != 0 || header.Gid != 0 || !header.ModTime.Equal(time.Unix(0, 0)) {
			t.Errorf("%s is of %d:%d and %s", header.Name, header.Uid, header.Gid, header.ModTime)
		}
		lines = append(lines, fmt.Sprintf("%s %o %s", header.Name, header.Mode, content))
	}
}

func TestRefused(t *testing.T) {
	source := filepath.Join(t.TempDir(), "source")
	if err := os.WriteFile(source, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for title, arguments := range map[string][]string{
		"it must be PATH=SOURCE":        {"-file", "a"},
		"with a relative PATH":          {"-file", "/a=" + source},
		"PATH=SOURCE, with":             {"-file", "a/../b=" + source},
		"a is there already":            {"-file", "a=" + source, "-executable", "a=" + source},
		"a is both a file and a folder": {"-file", "a=" + source, "-file", "a/b=" + source},
		"no such file":                  {"-file", "a=" + source + "x"},
		"is no regular file":            {"-file", "a=" + filepath.Dir(source)},
		"it takes -output FILE":         {"-file", "a=" + source, "b"},
	} {
		err := run(append([]string{"-output", filepath.Join(t.TempDir(), "layer")}, arguments...))
		if err == nil || !strings.Contains(err.Error(), title) {
			t.Errorf("%q: %v, want %q", arguments, err, title)
		}
	}
	if err := run(nil); err == nil {
		t.Error("nothing was written, without an error")
	}
}
