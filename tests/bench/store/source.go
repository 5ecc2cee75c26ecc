package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// makeSource makes what is stored: random bytes, the same in every run, or lines.
func makeSource(opts options, w workload, source string) error {
	random := rand.NewChaCha8([32]byte([]byte("the same bytes in every run ....")))
	if w.alone {
		return os.MkdirAll(source, 0o700) // nobody stores it
	}
	if !w.tree {
		return makeFile(source, random, int64(opts.size))
	}
	if w.listed {
		for i := range w.objects(opts) {
			content := listedContent(i)
			if err := makeFile(filepath.Join(source, listedName(i)), bytes.NewReader(content), int64(len(content))); err != nil {
				return err
			}
		}
		return nil
	}
	for i := range opts.files {
		// A hundred files a directory.
		path := filepath.Join(source, fmt.Sprintf("%03d", i/100), fmt.Sprintf("%05d", i))
		if err := makeFile(path, random, int64(opts.fileSize)); err != nil {
			return err
		}
	}
	return nil
}

func makeFile(path string, random io.Reader, size int64) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.CopyN(f, random, size)
	return errors.Join(err, f.Close())
}

// warm reads every file below a path once.
func warm(path string) error {
	buf := make([]byte, 256<<10)
	return filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		for err == nil {
			_, err = f.Read(buf)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	})
}

// same compares all files below two paths.
func same(source, out string) error {
	return filepath.WalkDir(source, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return sameFile(path, out+strings.TrimPrefix(path, source))
	})
}

func sameFile(a, b string) error {
	left, err := os.Open(a)
	if err != nil {
		return err
	}
	defer left.Close()
	right, err := os.Open(b)
	if err != nil {
		return err
	}
	defer right.Close()
	l, r := bufio.NewReaderSize(left, 256<<10), bufio.NewReaderSize(right, 256<<10)
	for {
		x, errX := l.Peek(256 << 10)
		y, errY := r.Peek(256 << 10)
		if !bytes.Equal(x, y) {
			return fmt.Errorf("%s and %s differ", a, b)
		}
		if len(x) == 0 {
			if errors.Is(errX, io.EOF) && errors.Is(errY, io.EOF) {
				return nil
			}
			return errors.Join(errX, errY)
		}
		if _, err := l.Discard(len(x)); err != nil {
			return err
		}
		if _, err := r.Discard(len(y)); err != nil {
			return err
		}
	}
}
