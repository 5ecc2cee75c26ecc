package rootfs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"powercloud.unidatum.com/go/image/cpio"
)

func TestRead(t *testing.T) {
	folder := t.TempDir()
	for name, content := range map[string]string{"a": "one\n", "b": "two\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list := `{"entries": [
		{"path": "/init", "kind": "file", "mode": "0755", "sources": ["DIR/a"]},
		{"path": "/certificates", "kind": "file", "mode": "0644", "uid": 1, "gid": 2, "sources": ["DIR/a", "DIR/b"]},
		{"path": "/dev", "kind": "directory", "mode": "1777"},
		{"path": "/sbin", "kind": "link", "mode": "0777", "target": "/"},
		{"path": "/dev/null", "kind": "character device", "mode": "0666", "major": 1, "minor": 3}
	]}`
	got, err := Read([]byte(strings.ReplaceAll(list, "DIR", folder)))
	if err != nil {
		t.Fatal(err)
	}
	want := []cpio.Entry{
		{Path: "/init", Mode: 0o755, Content: []byte("one\n")},
		{Path: "/certificates", Mode: 0o644, UID: 1, GID: 2, Content: []byte("one\ntwo\n")},
		{Path: "/dev", Kind: cpio.Directory, Mode: 0o1777},
		{Path: "/sbin", Kind: cpio.Link, Mode: 0o777, Target: "/"},
		{Path: "/dev/null", Kind: cpio.CharacterDevice, Mode: 0o666, Major: 1, Minor: 3},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("it is %+v, want %+v", got, want)
	}
}

func TestReadRefused(t *testing.T) {
	for want, list := range map[string]string{
		"no such list":          `[]`,
		"unknown field":         `{"entries": [{"path": "/a", "owner": 1}]}`,
		"something follows":     `{"entries": [{"path": "/a", "kind": "directory", "mode": "0755"}]} {}`,
		"is empty":              `{"entries": []}`,
		`/a: there is no kind`:  `{"entries": [{"path": "/a", "kind": "socket", "mode": "0755"}]}`,
		"must be octal":         `{"entries": [{"path": "/a", "kind": "directory", "mode": "0798"}]}`,
		"/b: a file needs sour": `{"entries": [{"path": "/b", "kind": "file", "mode": "0755"}]}`,
		"no such file":          `{"entries": [{"path": "/b", "kind": "file", "mode": "0755", "sources": ["/nonexistent/file"]}]}`,
	} {
		if _, err := Read([]byte(list)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for _, mode := range []string{"", "-1", "10000", "0x1"} {
		list, err := json.Marshal(map[string]any{"entries": []entry{{Path: "/a", Kind: "directory", Mode: mode}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Read(list); err == nil {
			t.Errorf("the mode %q passed", mode)
		}
	}
}
