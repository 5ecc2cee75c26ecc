package cloud

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// marks are what is in a test's image beside zeros, by offset.
var marks = map[int64]string{
	0:                "first",
	7*mebibyte - 3:   "over the end of what is read at a time",
	12 * mebibyte:    strings.Repeat("PowerCloud", 200_001),
	20*mebibyte - 10: "last bytes",
}

// create makes an image of a size in bytes, with the marks.
func create(t *testing.T, size int64) *os.File {
	t.Helper()
	image := empty(t)
	for offset, mark := range marks {
		if _, err := image.WriteAt([]byte(mark), offset); err != nil {
			t.Fatal(err)
		}
	}
	if err := image.Truncate(size); err != nil {
		t.Fatal(err)
	}
	return image
}

// empty makes an empty file.
func empty(t *testing.T) *os.File {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			t.Error(err)
		}
	})
	return file
}

// digest returns the SHA-256 of what is left in a reader, and its size in bytes.
func digest(t *testing.T, in io.Reader) (sum [sha256.Size]byte, size int64) {
	t.Helper()
	hash := sha256.New()
	size, err := io.Copy(hash, in)
	if err != nil {
		t.Fatal(err)
	}
	return [sha256.Size]byte(hash.Sum(nil)), size
}

// whole returns a reader of a file from its beginning on.
func whole(t *testing.T, file *os.File) io.Reader {
	t.Helper()
	in, _, err := content(file)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// failing is where nothing can be written.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestRefused(t *testing.T) {
	google := func(image *os.File) error { return PackGoogle(io.Discard, image) }
	azure := func(image *os.File) error { return PackAzure(empty(t), image) }
	sized := func(size int64) *os.File {
		image := empty(t)
		if err := image.Truncate(size); err != nil {
			t.Fatal(err)
		}
		return image
	}
	closed := sized(gibibyte)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	const googleSize, azureSize = "Google Cloud takes multiples of 1 GiB", "Azure takes multiples of 1 MiB from 20 MiB to 32 TiB"
	for name, test := range map[string]struct {
		pack  func(image *os.File) error
		image *os.File
		want  string
	}{
		"nothing for Google":        {google, sized(0), googleSize},
		"a sector for Google":       {google, sized(512), googleSize},
		"a GiB and more":            {google, sized(gibibyte + mebibyte), googleSize},
		"closed for Google":         {google, closed, "file already closed"},
		"nothing to write to":       {func(image *os.File) error { return PackGoogle(failing{}, image) }, sized(gibibyte), "disk full"},
		"nothing for Azure":         {azure, sized(0), azureSize},
		"too little for Azure":      {azure, sized(19 * mebibyte), azureSize},
		"20 MiB and a sector":       {azure, sized(20*mebibyte + 512), azureSize},
		"closed for Azure":          {azure, closed, "file already closed"},
		"written to already":        {func(image *os.File) error { return PackAzure(sized(1), image) }, sized(20 * mebibyte), "isn't empty"},
		"a closed file to write to": {func(image *os.File) error { return PackAzure(closed, image) }, sized(20 * mebibyte), "file already closed"},
	} {
		err := test.pack(test.image)
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "pack the disk image for ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

func TestAzureSizes(t *testing.T) {
	for size, fit := range map[int64]bool{
		azureMinimum - mebibyte: false, azureMinimum: true, azureMinimum + 1: false, azureMinimum + mebibyte: true,
		azureMaximum: true, azureMaximum + mebibyte: false,
	} {
		if err := checkAzureSize(size); (err == nil) != fit {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// TestShortened reads an image that has become shorter meanwhile.
func TestShortened(t *testing.T) {
	if _, err := copySparse(empty(t), bytes.NewReader(make([]byte, 3*mebibyte)), 4*mebibyte); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}
