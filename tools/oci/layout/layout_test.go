package layout_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"powercloud.unidatum.com/tools/oci/layout"
	"powercloud.unidatum.com/tools/oci/ocitest"
)

// index is an index of two images.
func index(t testing.TB) v1.ImageIndex {
	t.Helper()
	joined, err := layout.Join([]v1.Image{ocitest.Image(t, "amd64"), ocitest.Image(t, "arm64")})
	if err != nil {
		t.Fatal(err)
	}
	return joined
}

func TestImage(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "image")
	image := ocitest.Image(t, "amd64")
	if err := layout.WriteImage(folder, image); err != nil {
		t.Fatal(err)
	}
	content, err := layout.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	if content.Image == nil || content.Index != nil || content.Descriptor.Digest.String() != ocitest.Digest(t, image) {
		t.Errorf("opened %+v", content)
	}
	if err := validate.Image(content.Image); err != nil {
		t.Error(err)
	}
	// In Bazel's sandbox every file is a link to the real one.
	links := filepath.Join(t.TempDir(), "links")
	link(t, links, folder)
	if linked, err := layout.Open(links); err != nil {
		t.Error(err)
	} else if err := validate.Image(linked.Image); err != nil {
		t.Error(err)
	}
	if err := layout.WriteImage(folder, image); err == nil || !strings.Contains(err.Error(), "isn't empty") {
		t.Errorf("writing over an image: %v", err)
	}
}

// link makes a tree of links to the files of another.
func link(t *testing.T, to, from string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return os.Mkdir(filepath.Join(to, name), 0o700)
		}
		return os.Symlink(path, filepath.Join(to, name))
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestIndex(t *testing.T) {
	folder := t.TempDir()
	if err := layout.WriteIndex(folder, index(t)); err != nil {
		t.Fatal(err)
	}
	content, err := layout.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	if content.Index == nil || content.Image != nil {
		t.Fatalf("opened %+v", content)
	}
	if err := validate.Index(content.Index); err != nil {
		t.Error(err)
	}
	manifest, err := content.Index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if a, b := manifest.Manifests[0].Platform, manifest.Manifests[1].Platform; a.String() != "linux/amd64" || b.String() != "linux/arm64" {
		t.Errorf("the platforms are %s and %s", a, b)
	}

	amd64 := ocitest.Image(t, "amd64")
	if _, err := layout.Join([]v1.Image{amd64, amd64}); err == nil || !strings.Contains(err.Error(), "two images are for linux/amd64") {
		t.Errorf("joining the same image twice: %v", err)
	}
	if _, err := layout.Join(nil); err == nil {
		t.Error("an index of nothing was made")
	}
}

// TestDamage changes each file of a layout in turn.
func TestDamage(t *testing.T) {
	whole := t.TempDir()
	if err := layout.WriteIndex(whole, index(t)); err != nil {
		t.Fatal(err)
	}
	damages := map[string]func(path string, content []byte) error{
		"removed": func(path string, _ []byte) error { return os.Remove(path) },
		"cut":     func(path string, content []byte) error { return os.WriteFile(path, content[:len(content)-1], 0o600) },
		"longer": func(path string, content []byte) error {
			return os.WriteFile(path, append(bytes.Clone(content), '}'), 0o600)
		},
		"altered": func(path string, content []byte) error {
			return os.WriteFile(path, bytes.Replace(content, content[:1], []byte{content[0] ^ 1}, 1), 0o600)
		},
	}
	files := 0
	err := filepath.WalkDir(whole, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files++
		name, err := filepath.Rel(whole, path)
		if err != nil {
			return err
		}
		for title, damage := range damages {
			folder := t.TempDir()
			if err := os.CopyFS(folder, os.DirFS(whole)); err != nil {
				return err
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if err := damage(filepath.Join(folder, name), content); err != nil {
				return err
			}
			if _, err := layout.Open(folder); err == nil {
				t.Errorf("%s, %s: the layout was opened", name, title)
			}
		}
		return nil
	})
	// Two files at the top, the index, and three blobs for each image.
	if err != nil || files != 2+1+2*3 {
		t.Errorf("%d files, %v", files, err)
	}
}

func TestRefused(t *testing.T) {
	const version = `{"imageLayoutVersion": "1.0.0"}`
	digest := "sha256:" + strings.Repeat("0", 64)
	for title, c := range map[string]struct{ version, index, want string }{
		"a newer version": {`{"imageLayoutVersion": "2.0.0"}`, "{}", `has the version "2.0.0"`},
		"no index":        {version, "{}", "has the version 0 instead of 2"},
		"nothing in it":   {version, `{"schemaVersion": 2, "manifests": []}`, "names 0 images instead of one"},
		"no image": {version, `{"schemaVersion": 2, "manifests": [{"mediaType": "text/plain", "digest": "` + digest + `", "size": 1}]}`,
			"is that of no image"},
		"too large": {version, `{"schemaVersion": 2, "manifests": [{"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": "` +
			digest + `", "size": 99999999}]}`, "has 99999999 bytes"},
		"a path for a hash": {version, `{"schemaVersion": 2, "manifests": [{"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": "sha256:../../index.json", "size": 1}]}`,
			"isn't the JSON that it should be"},
		"not JSON": {version, "index", "isn't the JSON that it should be"},
	} {
		folder := t.TempDir()
		write(t, filepath.Join(folder, "oci-layout"), c.version)
		write(t, filepath.Join(folder, "index.json"), c.index)
		if _, err := layout.Open(folder); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", title, err, c.want)
		}
	}
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// FuzzOpen opens layouts whose index.json and one blob are arbitrary. What is
// opened can be read to its end.
func FuzzOpen(f *testing.F) {
	whole := f.TempDir()
	image := ocitest.Image(f, "amd64")
	if err := layout.WriteImage(whole, image); err != nil {
		f.Fatal(err)
	}
	index, err := os.ReadFile(filepath.Join(whole, "index.json"))
	if err != nil {
		f.Fatal(err)
	}
	manifest, err := image.RawManifest()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(index, manifest)
	f.Add([]byte(`{"schemaVersion": 2, "manifests": [{"size": -1}]}`), []byte("{}"))
	f.Fuzz(func(t *testing.T, index, manifest []byte) {
		hash, _, err := v1.SHA256(bytes.NewReader(manifest))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(whole, "index.json"), string(index))
		if blob := filepath.Join(whole, "blobs", "sha256", hash.Hex); !exists(blob) {
			write(t, blob, string(manifest))
			defer os.Remove(blob)
		}
		content, err := layout.Open(whole)
		if err != nil {
			return
		}
		if (content.Image == nil) == (content.Index == nil) {
			t.Errorf("opened %+v", content)
		}
		if content.Image != nil {
			if _, err := content.Image.ConfigFile(); err != nil {
				t.Error(err)
			}
		}
	})
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
