package release

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ulikunitz/xz"

	"powercloud.unidatum.com/tools/lint"
)

func TestName(t *testing.T) {
	for built, want := range map[string]string{
		"powercloud-amd64.efi":        "powercloud-v2026.11.30.1-amd64.efi",
		"powercloud-arm64.img.xz":     "powercloud-v2026.11.30.1-arm64.img.xz",
		"powercloud-arm64.gce.tar.gz": "powercloud-v2026.11.30.1-arm64.gce.tar.gz",
		"pcctl-darwin-arm64":          "pcctl-v2026.11.30.1-darwin-arm64",
	} {
		if got, err := Name(built, "v2026.11.30.1"); err != nil || got != want {
			t.Errorf("%s became %s, %v", built, got, err)
		}
	}
	for _, bad := range [][2]string{{"pcctl", "dev"}, {"-a", "dev"}, {"a-", "dev"}, {"a/b-c", "dev"}, {"a-b", ""}, {"a-b", "../x"}} {
		if got, err := Name(bad[0], bad[1]); err == nil {
			t.Errorf("%q became %s", bad, got)
		}
	}
}

func TestWriteSums(t *testing.T) {
	folder := t.TempDir()
	if err := WriteSums(folder); err == nil {
		t.Error("a release without files passed")
	}
	want := ""
	for _, name := range []string{"a", "a-b", "b"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
		want += fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(name)), name)
	}
	if err := WriteSums(folder); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(folder, SumsName)); err != nil || string(got) != want {
		t.Errorf("it is %q, %v, want %q", got, err, want)
	}
	if err := WriteSums(folder); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("twice: %v", err)
	}
}

// packages returns the folder of the unpacked packages that Bazel passes.
func packages(t *testing.T) string {
	t.Helper()
	for _, file := range strings.Fields(os.Getenv("XZ")) {
		if folder, ok := strings.CutSuffix(file, "/xz-utils/usr/bin/xz"); ok {
			found, err := lint.Runfile(folder)
			if err != nil {
				t.Fatal(err)
			}
			return found
		}
	}
	t.Skip("Bazel unpacks xz for this test: bazel test //go/image/release:all")
	return ""
}

func TestCompress(t *testing.T) {
	folder := t.TempDir()
	content := make([]byte, 3<<24+1000)
	copy(content[1<<24+5:], "something")
	content[len(content)-1] = 1
	input := filepath.Join(folder, "in")
	if err := os.WriteFile(input, content, 0o600); err != nil {
		t.Fatal(err)
	}
	var outputs [][]byte
	for _, name := range []string{"one", "two"} {
		output := filepath.Join(folder, name)
		if err := Compress(t.Context(), packages(t), input, output); err != nil {
			t.Fatal(err)
		}
		compressed, err := os.ReadFile(output)
		if err != nil {
			t.Fatal(err)
		}
		outputs = append(outputs, compressed)
	}
	if !bytes.Equal(outputs[0], outputs[1]) || len(outputs[0]) > 64<<10 {
		t.Errorf("it has %d bytes, and then %d, or others", len(outputs[0]), len(outputs[1]))
	}
	r, err := xz.NewReader(bytes.NewReader(outputs[0]))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, content) {
		t.Errorf("it unpacks to %d bytes, %v", len(got), err)
	}
	if err := Compress(t.Context(), packages(t), filepath.Join(folder, "none"), filepath.Join(folder, "out")); err == nil {
		t.Error("a file that isn't there passed")
	}
}

func TestVersion(t *testing.T) {
	if got, err := Version([]byte("BUILD_HOST x\nSTABLE_VERSION v2026.11.30\n")); err != nil || got != "v2026.11.30" {
		t.Errorf("%q, %v", got, err)
	}
	// The longest that tools/bazel/status prints.
	long := "v2026.11.30-12345-g0123456789abcdef-dirty"
	if got, err := Version([]byte("STABLE_VERSION " + long + "\n")); err != nil || got != long {
		t.Errorf("%q, %v", got, err)
	}
	for _, status := range []string{"", "STABLE_VERSION \n", "STABLE_VERSION a b\n", "XSTABLE_VERSION a\n"} {
		if got, err := Version([]byte(status)); err == nil {
			t.Errorf("%q gave %q", status, got)
		}
	}
}
