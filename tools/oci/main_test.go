package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"powercloud.unidatum.com/tools/oci/ocitest"
)

// oci runs a command, which must succeed, and returns what it prints.
func oci(t *testing.T, arguments ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if status := run(t.Context(), arguments, &stdout, &stderr); status != 0 {
		t.Fatalf("oci %s: status %d: %s", strings.Join(arguments, " "), status, &stderr)
	}
	return stdout.String()
}

// refuses fails the test unless the command ends with the status and an error
// that is one line and holds the text.
func refuses(t *testing.T, status int, text string, arguments ...string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	got := run(t.Context(), arguments, &stdout, &stderr)
	if got != status || !strings.Contains(stderr.String(), text) || status == 1 && strings.Count(stderr.String(), "\n") != 1 {
		t.Errorf("oci %s: status %d: %q, want %d and %q", strings.Join(arguments, " "), got, &stderr, status, text)
	}
}

// buildFor builds an image for Linux on this processor and returns its folder.
func buildFor(t *testing.T, architecture string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "image")
	oci(t, "image", "-output", folder, "-os", "linux", "-architecture", architecture,
		"-layer", ocitest.File(t, "a.tar", ocitest.Tar(t, "bin/a", "program for "+architecture)),
		"-entrypoint", ocitest.File(t, "entrypoint", []byte("/bin/a\n-x\n")),
		"-env", ocitest.File(t, "env", []byte("A=b\n")),
		"-exposed-ports", ocitest.File(t, "ports", []byte("80/tcp,81")),
		"-created", ocitest.File(t, "created", []byte("2026-01-02T03:04:05.5Z\n")),
		"-user", "1", "-workdir", "/")
	return folder
}

// buildIndexOf builds an index of images for two processors.
func buildIndexOf(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "index")
	oci(t, "index", "-output", folder, buildFor(t, "amd64"), buildFor(t, "arm64"))
	return folder
}

// digestOf is the hash of an image.
func digestOf(t *testing.T, folder string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "digest")
	oci(t, "digest", "-image", folder, "-output", file)
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(content))
}

func TestImageFromFiles(t *testing.T) {
	base := buildFor(t, "amd64")
	if a, b := digestOf(t, base), digestOf(t, buildFor(t, "amd64")); a != b {
		t.Errorf("the same image is %s and %s", a, b)
	}
	folder := filepath.Join(t.TempDir(), "image")
	oci(t, "image", "-output", folder, "-base", base, "-labels", ocitest.File(t, "labels", []byte("a=b\n")),
		"-annotations", ocitest.File(t, "annotations", []byte("c=d\n")), "-volumes", ocitest.File(t, "volumes", []byte("/data")),
		"-cmd", ocitest.File(t, "cmd", []byte("ls\n")))
	image, err := openImage(folder)
	if err != nil {
		t.Fatal(err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(file.Config)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"Cmd":["ls"],"Entrypoint":["/bin/a","-x"],"Env":["A=b"],"Labels":{"a":"b"},"User":"1",` +
		`"Volumes":{"/data":{}},"WorkingDir":"/","ExposedPorts":{"80/tcp":{},"81":{}}}`
	if string(got) != want || file.Created.Format("2006-01-02T15:04:05.9Z") != "2026-01-02T03:04:05.5Z" {
		t.Errorf("the configuration is %s, created %s, want %s", got, file.Created, want)
	}

	index := buildIndexOf(t)
	refuses(t, 1, "holds an index, where an image is wanted", "image", "-output", t.TempDir(), "-base", index)
	refuses(t, 1, "two images are for linux/amd64", "index", "-output", t.TempDir(), base, base)
	refuses(t, 1, `"x" isn't of the form key=value`, "image", "-output", t.TempDir(), "-base", base, "-env", ocitest.File(t, "env", []byte("x")))
	refuses(t, 1, "parsing time", "image", "-output", t.TempDir(), "-base", base, "-created", ocitest.File(t, "created", []byte("today")))
	refuses(t, 2, "-output is missing", "image", "-base", base)
	refuses(t, 2, "unexpected or missing arguments", "index", "-output", t.TempDir())
	refuses(t, 2, "usage: oci", "pull")
	refuses(t, 2, "usage: oci")
}

// newRegistry starts a registry, and returns its address and the paths of the
// requests that changed it.
func newRegistry(t *testing.T) (address string, written func() []string) {
	t.Helper()
	real := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	requests := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/manifests/") {
			requests <- r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
		}
		real.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://"), func() []string {
		var all []string
		for len(requests) > 0 {
			all = append(all, <-requests)
		}
		return all
	}
}

func TestPush(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir()) // no logins of the machine's user
	address, written := newRegistry(t)
	folder := buildIndexOf(t)
	digest := digestOf(t, folder)
	printed := oci(t, "push", "-image", folder, "-repository", "registry.invalid/unused",
		"-tags", ocitest.File(t, "tags", []byte("v1\nlatest\n")), "--repository", address+"/team/app", "-t", "extra")
	if want := address + "/team/app@" + digest + "\n"; printed != want {
		t.Errorf("printed %q, want %q", printed, want)
	}
	// The tags come last: none names what isn't there yet.
	if got := written(); len(got) < 4 || !slices.Equal(got[len(got)-4:], []string{digest, "v1", "latest", "extra"}) {
		t.Errorf("written were %q", got)
	}
	for _, tag := range []string{"v1", "latest", "extra"} {
		index := pull(t, address+"/team/app:"+tag)
		if got := ocitest.Digest(t, index); got != digest {
			t.Errorf("%s is %s, pushed was %s", tag, got, digest)
		}
		if err := validate.Index(index); err != nil {
			t.Errorf("%s, pulled again: %v", tag, err)
		}
	}

	image := buildFor(t, "amd64")
	printed = oci(t, "push", "-image", image, "-repository-file", ocitest.File(t, "repository", []byte(address+"/team/one\n")))
	ref, err := name.NewDigest(strings.TrimSpace(printed))
	if err != nil {
		t.Fatal(err)
	}
	pulled, err := remote.Image(ref, remote.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(pulled); err != nil {
		t.Error(err)
	}
}

func pull(t *testing.T, from string) v1.ImageIndex {
	t.Helper()
	ref, err := name.ParseReference(from)
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Index(ref, remote.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	return index
}

func TestPushRefused(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	address, written := newRegistry(t)
	image := buildFor(t, "amd64")
	refuses(t, 1, "no repository was given", "push", "-image", image)
	for _, repository := range []string{"app", address + "/app:v1", address + "/app@sha256:" + strings.Repeat("0", 64), address + "/App"} {
		refuses(t, 1, "the repository", "push", "-image", image, "-repository", repository)
	}
	refuses(t, 1, `the tag "a/b"`, "push", "-image", image, "-repository", address+"/app", "-tag", "a/b")

	// A damaged image isn't pushed in part.
	blobs, err := filepath.Glob(filepath.Join(image, "blobs", "sha256", "*"))
	if err != nil || len(blobs) != 3 {
		t.Fatalf("%d blobs, %v", len(blobs), err)
	}
	for _, blob := range blobs {
		if err := os.Truncate(blob, 10); err != nil {
			t.Fatal(err)
		}
	}
	refuses(t, 1, "isn't what its name and size say", "push", "-image", image, "-repository", address+"/app")
	if got := written(); len(got) != 0 {
		t.Errorf("written were %q", got)
	}

	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, `{"errors": [{"code": "DENIED", "message": "no"}]}`, http.StatusForbidden)
	}))
	t.Cleanup(refusing.Close)
	refuses(t, 1, "DENIED", "push", "-image", buildFor(t, "amd64"), "-repository", strings.TrimPrefix(refusing.URL, "http://")+"/app")
}

// archiveOf writes an archive twice, checks that both are the same, and returns
// its path.
func archiveOf(t *testing.T, folder, format, tags string) string {
	t.Helper()
	var files, contents []string
	for range 2 {
		file := filepath.Join(t.TempDir(), "archive.tar")
		oci(t, "archive", "-image", folder, "-format", format, "-output", file, "-tags", ocitest.File(t, "tags", []byte(tags)))
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		files, contents = append(files, file), append(contents, string(content))
	}
	if contents[0] != contents[1] {
		t.Errorf("the format %s: two archives of one image differ", format)
	}
	return files[0]
}

func TestDockerArchive(t *testing.T) {
	folder := buildFor(t, "amd64")
	file := archiveOf(t, folder, "docker", "app:v1\nexample.org/team/app:v2\n")
	want, err := openImage(folder)
	if err != nil {
		t.Fatal(err)
	}
	wanted, err := want.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	for _, tag := range []string{"app:v1", "example.org/team/app:v2"} {
		ref, err := name.NewTag(tag)
		if err != nil {
			t.Fatal(err)
		}
		image, err := tarball.ImageFromPath(file, &ref)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := image.ConfigName(); err != nil || got != wanted {
			t.Errorf("%s has the configuration %s, %v, want %s", tag, got, err, wanted)
		}
	}
	tags := ocitest.File(t, "tags", []byte("app:v1"))
	output := filepath.Join(t.TempDir(), "archive.tar")
	refuses(t, 1, "use the format oci", "archive", "-image", buildIndexOf(t), "-tags", tags, "-output", output)
	refuses(t, 1, "unknown format", "archive", "-image", folder, "-tags", tags, "-format", "zip", "-output", output)
	refuses(t, 1, "give it a tag", "archive", "-image", folder, "-tags", ocitest.File(t, "none", nil), "-output", output)
	refuses(t, 1, `the tag "A"`, "archive", "-image", folder, "-tags", ocitest.File(t, "wrong", []byte("A")), "-output", output)
	if _, err := os.Stat(output); err == nil {
		t.Error("what was refused left a file")
	}
}

func TestOCIArchive(t *testing.T) {
	folder := buildIndexOf(t)
	file, err := os.Open(archiveOf(t, folder, "oci", "app:v1\nexample.org/team/app:v2\n"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unpacked := t.TempDir()
	var index v1.IndexManifest
	for archive := tar.NewReader(file); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		if header.Name == "index.json" {
			if err := json.Unmarshal(content, &index); err != nil {
				t.Fatal(err)
			}
			// As with one tag.
			index.Manifests = index.Manifests[:min(2, len(index.Manifests))]
			one := index
			one.Manifests = one.Manifests[:1]
			if content, err = json.Marshal(one); err != nil {
				t.Fatal(err)
			}
		}
		path := filepath.Join(unpacked, filepath.FromSlash(header.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if digestOf(t, unpacked) != digestOf(t, folder) {
		t.Error("another index came out than went in")
	}
	var named []string
	for _, descriptor := range index.Manifests {
		named = append(named, descriptor.Annotations["io.containerd.image.name"])
	}
	if want := []string{"index.docker.io/library/app:v1", "example.org/team/app:v2"}; !slices.Equal(named, want) {
		t.Errorf("it is named %q, want %q", named, want)
	}
}

// engine makes a container engine out of a shell script.
func engine(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "engine")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoad(t *testing.T) {
	folder := buildFor(t, "amd64")
	tags := "app:v1\n"
	want, err := os.ReadFile(archiveOf(t, folder, "docker", tags))
	if err != nil {
		t.Fatal(err)
	}
	tagFile := ocitest.File(t, "tags", []byte(tags))
	loaded := filepath.Join(t.TempDir(), "loaded")
	taking := engine(t, fmt.Sprintf("[ \"$*\" = load ] && cat > %q && echo loaded", loaded))
	if printed := oci(t, "load", "-image", folder, "-tags", tagFile, "-loader", taking); printed != "loaded\n" {
		t.Errorf("printed %q", printed)
	}
	if got, err := os.ReadFile(loaded); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the engine got %d bytes (%v), want %d", len(got), err, len(want))
	}
	refuses(t, 1, "load: exit status 3", "load", "-image", folder, "-tags", tagFile, "-loader", engine(t, "exit 3"))
	refuses(t, 1, "start "+folder+" load", "load", "-image", folder, "-tags", tagFile, "-loader", folder)

	// The first of the engines that is there.
	t.Setenv("PATH", t.TempDir())
	refuses(t, 1, "neither docker nor podman", "load", "-image", folder, "-tags", tagFile)
	if err := os.Symlink(engine(t, "exit 4"), filepath.Join(os.Getenv("PATH"), "podman")); err != nil {
		t.Fatal(err)
	}
	refuses(t, 1, "podman load: exit status 4", "load", "-image", folder, "-tags", tagFile)
}
