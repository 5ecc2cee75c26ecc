package container_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"powercloud.unidatum.com/tools/lint"
	"powercloud.unidatum.com/tools/oci/layout"
)

// built returns the path of what Bazel built for the test, by the name of the
// variable that Bazel puts it in.
func built(t *testing.T, variable string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		t.Skip("only Bazel builds the images: bazel test //tests/container:all")
	}
	found, err := lint.Runfile(path)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// openIndex opens the index that Bazel built.
func openIndex(t *testing.T) layout.Content {
	t.Helper()
	content, err := layout.Open(built(t, "IMAGE"))
	if err != nil {
		t.Fatal(err)
	}
	if content.Index == nil {
		t.Fatal("it is no index")
	}
	if err := validate.Index(content.Index); err != nil {
		t.Fatal(err)
	}
	return content
}

func TestImages(t *testing.T) {
	content := openIndex(t)
	manifest, err := content.Index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for i, architecture := range []string{"amd64", "arm64"} {
		t.Run(architecture, func(t *testing.T) {
			descriptor := manifest.Manifests[i]
			if got := descriptor.Platform.String(); got != "linux/"+architecture {
				t.Errorf("it is for %s", got)
			}
			image, err := content.Index.Image(descriptor.Digest)
			if err != nil {
				t.Fatal(err)
			}
			file, err := image.ConfigFile()
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprintf("%v as %s in %s", file.Config.Entrypoint, file.Config.User, file.Config.WorkingDir); got != "[/pcctl] as 65532:65532 in /" {
				t.Errorf("it runs %s", got)
			}
			program := onlyFile(t, image, "pcctl")
			if want := read(t, built(t, strings.ToUpper(architecture))); !bytes.Equal(program, want) {
				t.Errorf("its program has %d bytes, the one that is released %d", len(program), len(want))
			}
			if architecture == runtime.GOARCH {
				runs(t, program)
			}
		})
	}
	if len(manifest.Manifests) != 2 {
		t.Errorf("the index has %d images", len(manifest.Manifests))
	}
}

// onlyFile returns the content of the file of this name, which must be the only
// thing in the image, and executable for everybody.
func onlyFile(t *testing.T, image v1.Image, name string) []byte {
	t.Helper()
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	unpacked, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer unpacked.Close()
	archive := tar.NewReader(unpacked)
	header, err := archive.Next()
	if err != nil {
		t.Fatal(err)
	}
	if header.Name != name || header.Mode != 0o755 {
		t.Fatalf("the layer begins with %s, mode %o", header.Name, header.Mode)
	}
	content, err := io.ReadAll(archive)
	if err != nil {
		t.Fatal(err)
	}
	if header, err := archive.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("the layer goes on with %v, %v", header, err)
	}
	return content
}

// runs fails the test unless the program runs where there is nothing else.
func runs(t *testing.T, program []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, program, 0o700); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(path, "version")
	command.Env = []string{}
	if out, err := command.CombinedOutput(); err != nil || len(out) == 0 {
		t.Errorf("the program printed %q: %v", out, err)
	}
}

func TestPush(t *testing.T) {
	content := openIndex(t)
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	repository := strings.TrimPrefix(server.URL, "http://") + "/powercloud/pcctl"
	command := exec.Command(built(t, "PUSH"), "--repository", repository, "--tag", "v1")
	// No logins of the machine's user.
	command.Env = append(os.Environ(), "DOCKER_CONFIG="+t.TempDir())
	out, err := command.CombinedOutput()
	if want := repository + "@" + content.Descriptor.Digest.String() + "\n"; err != nil || string(out) != want {
		t.Fatalf("printed %q, %v, want %q", out, err, want)
	}
	ref, err := name.ParseReference(repository + ":v1")
	if err != nil {
		t.Fatal(err)
	}
	pulled, err := remote.Index(ref, remote.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(pulled); err != nil {
		t.Error(err)
	}
	if digest, err := pulled.Digest(); err != nil || digest != content.Descriptor.Digest {
		t.Errorf("pulled %s, %v, pushed %s", digest, err, content.Descriptor.Digest)
	}
}

func TestLoad(t *testing.T) {
	loader := built(t, "LOAD")
	scratch := t.TempDir()
	engine, loaded := filepath.Join(scratch, "engine"), filepath.Join(scratch, "loaded.tar")
	script := fmt.Sprintf("#!/bin/sh\n[ \"$*\" = load ] && cat > %q\n", loaded)
	if err := os.WriteFile(engine, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(loader, "-loader", engine).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	tag, err := name.NewTag("powercloud/pcctl:dev")
	if err != nil {
		t.Fatal(err)
	}
	image, err := tarball.ImageFromPath(loaded, &tag)
	if err != nil {
		t.Fatal(err)
	}
	if program := onlyFile(t, image, "pcctl"); !bytes.Equal(program, read(t, built(t, "AMD64"))) {
		t.Error("another program was loaded than the one that is released")
	}
}
