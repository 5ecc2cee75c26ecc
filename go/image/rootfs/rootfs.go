// Package rootfs reads the list of what is in the root filesystem, as
// rootfs/rootfs.bzl writes it from the declaration.
//
// The list is JSON with one object an entry:
//
//	{"entries": [{"path": "/init", "kind": "file", "mode": "0755", "sources": ["bazel-out/…/pcinit"]}]}
//
// A file has sources, which are joined; a link has a target; a device has a
// major and a minor number. The owner and group are 0 unless uid and gid say
// otherwise.
package rootfs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"powercloud.unidatum.com/go/image/cpio"
)

// entry is an entry of the list.
type entry struct {
	Path    string   `json:"path"`
	Kind    string   `json:"kind"`
	Mode    string   `json:"mode"`
	UID     uint32   `json:"uid"`
	GID     uint32   `json:"gid"`
	Sources []string `json:"sources"`
	Target  string   `json:"target"`
	Major   uint32   `json:"major"`
	Minor   uint32   `json:"minor"`
}

// kinds are the names of kinds in the list.
var kinds = map[string]cpio.Kind{
	"file":             cpio.File,
	"directory":        cpio.Directory,
	"link":             cpio.Link,
	"character device": cpio.CharacterDevice,
	"block device":     cpio.BlockDevice,
}

// Read reads a list and the files that it names as sources. What it returns is
// ready for cpio.Write, which checks the rest.
func Read(list []byte) ([]cpio.Entry, error) {
	var content struct {
		Entries []entry `json:"entries"`
	}
	decoder := json.NewDecoder(bytes.NewReader(list))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&content); err != nil {
		return nil, fmt.Errorf("the list of the root filesystem is no such list: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the list of the root filesystem")
	}
	if len(content.Entries) == 0 {
		return nil, errors.New("the list of the root filesystem is empty")
	}
	var entries []cpio.Entry
	for _, e := range content.Entries {
		converted, err := convert(e)
		if err != nil {
			return nil, fmt.Errorf("the list of the root filesystem: %s: %w", e.Path, err)
		}
		entries = append(entries, converted)
	}
	return entries, nil
}

// convert returns an entry with its content.
func convert(e entry) (cpio.Entry, error) {
	kind, ok := kinds[e.Kind]
	if !ok {
		return cpio.Entry{}, fmt.Errorf("there is no kind %q", e.Kind)
	}
	mode, err := strconv.ParseUint(e.Mode, 8, 12)
	if err != nil {
		return cpio.Entry{}, fmt.Errorf("the mode %q must be octal, at most 7777", e.Mode)
	}
	if (kind == cpio.File) != (len(e.Sources) > 0) {
		return cpio.Entry{}, errors.New("a file needs sources, and nothing else has any")
	}
	var content []byte
	for _, source := range e.Sources {
		part, err := os.ReadFile(source)
		if err != nil {
			return cpio.Entry{}, err
		}
		content = append(content, part...)
	}
	return cpio.Entry{
		Path: e.Path, Kind: kind, Mode: uint32(mode), UID: e.UID, GID: e.GID,
		Content: content, Target: e.Target, Major: e.Major, Minor: e.Minor,
	}, nil
}
