package bounded

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	for most, want := range map[int64]string{0: "", 4: "0123", 10: "0123456789", 11: "0123456789"} {
		if content, err := ReadFile(path, most); string(content) != want || err != nil {
			t.Errorf("at most %d bytes: %q, %v", most, content, err)
		}
	}
	if _, err := ReadFile(path+".missing", 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that isn't there: %v", err)
	}
	if _, err := ReadFile(filepath.Dir(path), 1); err == nil {
		t.Error("a folder was read")
	}
}
