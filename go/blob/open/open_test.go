package open_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/open"
)

func TestOpen(t *testing.T) {
	spec, err := blob.ParseSpec("./home")
	if err != nil {
		t.Fatal(err)
	}
	location, err := open.Open(t.Context(), spec)
	if err != nil || location.String() != "./home" {
		t.Errorf("Open = %v, %v", location, err)
	}
	for _, text := range []string{"s3://b", "node://n", "ec:1:/a;/b"} {
		spec, err := blob.ParseSpec(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := open.Open(t.Context(), spec); !errors.Is(err, open.ErrUnsupported) {
			t.Errorf("Open(%s): %v, want ErrUnsupported", text, err)
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
		filepath.Join(at, "c") + ",s3://b":             "s3://b: s3 locations",
		filepath.Join(at, "c", "d") + "," + at + "/c/": "",
	} {
		specs, err := blob.ParseList(list)
		if err != nil {
			t.Fatal(err)
		}
		_, err = open.All(t.Context(), specs)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("All(%s): %v, want %q", list, err, want)
		}
	}
}
