package initramfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/u-root/u-root/pkg/cpio"
)

func TestArchive(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "archive")
	source := filepath.Join(folder, "source")
	if err := errors.Join(
		os.MkdirAll(filepath.Join(source, "below"), 0o755),
		os.WriteFile(filepath.Join(source, "below", "program"), []byte("p"), 0o755),
		os.Symlink("source", filepath.Join(folder, "link")),
	); err != nil {
		t.Fatal(err)
	}
	a, err := Create(file)
	if err != nil {
		t.Fatal(err)
	}
	a.Content("/etc/name", 0o600, []byte("an earlier one"))
	a.Content("etc/name", 0o600, []byte("n"))
	a.Folder("etc")
	if err := errors.Join(
		a.Tree("/tree", filepath.Join(folder, "link")),
		a.File("init", filepath.Join(source, "below", "program")),
		a.Close(),
	); err != nil {
		t.Fatal(err)
	}
	want := "etc d755 \netc/name -600 n\ninit -755 p\ntree d755 \ntree/below d755 \ntree/below/program -755 p\n"
	if got := list(t, file); got != want {
		t.Errorf("it holds:\n%swant:\n%s", got, want)
	}
	if err := a.File("none", filepath.Join(folder, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the error is %v", err)
	}
}

// list describes each entry of an archive in a line.
func list(t *testing.T, file string) string {
	t.Helper()
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	records, err := cpio.ReadAllRecords(cpio.Newc.Reader(in))
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for _, record := range records {
		content, err := io.ReadAll(io.NewSectionReader(record, 0, int64(record.FileSize)))
		if err != nil {
			t.Fatal(err)
		}
		kind := map[uint64]string{cpio.S_IFREG: "-", cpio.S_IFDIR: "d"}[record.Mode&cpio.S_IFMT]
		fmt.Fprintf(&lines, "%s %s%o %s\n", record.Name, kind, record.Mode&0o7777, content)
	}
	return lines.String()
}
