package open_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/open"
)

// getenv has the credentials that AWS's tools use.
func getenv(name string) string {
	return map[string]string{"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret"}[name]
}

func TestOpen(t *testing.T) {
	options := open.Options{Getenv: getenv}
	for text, want := range map[string]string{
		"./home":                       "",
		"s3://bucket/pc":               "",
		"ec:1:/a;s3://bucket":          "",
		"s3://bucket?creds=r2":         "its credentials are missing: set R2_ACCESS_KEY_ID and R2_SECRET_ACCESS_KEY",
		"ec:1:/a;s3://bucket?creds=r2": "s3://bucket?creds=r2: its credentials are missing",
		"node://home-1":                "node locations: this build has no such location yet",
		"ec:2:/a;/b;node://home-1;/c":  "node://home-1: node locations: this build has no such location yet",
	} {
		spec, err := blob.ParseSpec(text)
		if err != nil {
			t.Fatal(err)
		}
		location, err := options.Open(spec)
		switch {
		case want == "" && (err != nil || location.String() != text):
			t.Errorf("Open(%s) = %v, %v", text, location, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("Open(%s): %v, want %q", text, err, want)
		}
	}
}

func TestAllRefusesOneDirectoryUnderTwoNames(t *testing.T) {
	at := t.TempDir()
	place, link := filepath.Join(at, "a"), filepath.Join(at, "b")
	if err := os.Mkdir(place, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(place, link); err != nil {
		t.Skip("no symbolic links:", err)
	}
	for list, want := range map[string]string{
		place + "," + link:                             "are the same directory",
		place + "," + filepath.Join(at, "c"):           "",
		filepath.Join(at, "c") + ",node://b":           "node://b: node locations",
		"ec:1:" + place + ";/x," + link:                "are the same directory",
		"ec:1:" + place + ";" + link:                   "are the same directory",
		filepath.Join(at, "c", "d") + "," + at + "/c/": "",
	} {
		specs, err := blob.ParseList(list)
		if err != nil {
			t.Fatal(err)
		}
		_, err = open.Options{Getenv: getenv}.All(specs)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("All(%s): %v, want %q", list, err, want)
		}
	}
}
