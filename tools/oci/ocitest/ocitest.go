// Package ocitest makes small layers and images for tests.
package ocitest

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"powercloud.unidatum.com/tools/oci/image"
)

// Tar returns a tar file with one file in it.
func Tar(t testing.TB, name, content string) []byte {
	t.Helper()
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	err := archive.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Mode: 0o644, Typeflag: tar.TypeReg})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// File writes a file of this name to a folder of its own and returns its path.
func File(t testing.TB, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Layer returns a layer with one file in it.
func Layer(t testing.TB, name, content string) image.Layer {
	t.Helper()
	layer, err := image.OpenLayer(File(t, "layer.tar", Tar(t, name, content)))
	if err != nil {
		t.Fatal(err)
	}
	return layer
}

// Image returns an image for Linux on this processor with one small layer.
func Image(t testing.TB, architecture string) v1.Image {
	t.Helper()
	built, err := image.Build(nil, image.Config{OS: "linux", Architecture: architecture},
		[]image.Layer{Layer(t, "etc/hello", "hello, "+architecture)})
	if err != nil {
		t.Fatal(err)
	}
	return built
}

// Digest returns the hash by which an image or an index is named.
func Digest(t testing.TB, of interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	digest, err := of.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}
