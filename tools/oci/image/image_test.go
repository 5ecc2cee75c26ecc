package image_test

import (
	"bytes"
	"compress/gzip"
	"reflect"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"

	"powercloud.unidatum.com/tools/oci/image"
	"powercloud.unidatum.com/tools/oci/layout"
	"powercloud.unidatum.com/tools/oci/ocitest"
)

func build(t *testing.T, base v1.Image, config image.Config, layers ...image.Layer) v1.Image {
	t.Helper()
	built, err := image.Build(base, config, layers)
	if err != nil {
		t.Fatal(err)
	}
	// A layout is read with every hash and size checked.
	folder := t.TempDir()
	if err := layout.WriteImage(folder, built); err != nil {
		t.Fatal(err)
	}
	content, err := layout.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	return content.Image
}

func configOf(t *testing.T, built v1.Image) *v1.ConfigFile {
	t.Helper()
	file, err := built.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestScratch(t *testing.T) {
	config := image.Config{
		OS: "linux", Architecture: "arm64", Variant: "v8",
		Entrypoint: []string{"/pcctl", "--json"}, Cmd: []string{"ls"},
		Env:  []image.Pair{{Key: "HOME", Value: "/home"}, {Key: "CACHE", Value: "${HOME}/cache:$HOME"}},
		User: "1:2", WorkingDir: "/home", ExposedPorts: []string{"7443/tcp", "53/udp", "80"}, Volumes: []string{"/data"},
		Labels: []image.Pair{{Key: "a", Value: "b"}}, Annotations: []image.Pair{{Key: "c", Value: "d=e"}},
	}
	built := build(t, nil, config, ocitest.Layer(t, "a", "first"), ocitest.Layer(t, "b", "second"))
	file := configOf(t, built)
	want := v1.Config{
		Entrypoint: []string{"/pcctl", "--json"}, Cmd: []string{"ls"},
		Env:  []string{"HOME=/home", "CACHE=/home/cache:/home"},
		User: "1:2", WorkingDir: "/home",
		ExposedPorts: map[string]struct{}{"7443/tcp": {}, "53/udp": {}, "80": {}},
		Volumes:      map[string]struct{}{"/data": {}}, Labels: map[string]string{"a": "b"},
	}
	if !reflect.DeepEqual(file.Config, want) {
		t.Errorf("the configuration is %+v, want %+v", file.Config, want)
	}
	if got := file.Platform().String(); got != "linux/arm64/v8" {
		t.Errorf("it is for %s", got)
	}
	if !file.Created.Equal(time.Unix(0, 0)) || !file.History[1].Created.Equal(time.Unix(0, 0)) {
		t.Errorf("created at %v, its layer at %v", file.Created, file.History[1].Created)
	}
	manifest, err := built.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if manifest.MediaType != types.OCIManifestSchema1 || len(manifest.Layers) != 2 || manifest.Layers[0].MediaType != types.OCILayer ||
		manifest.Config.MediaType != types.OCIConfigJSON || manifest.Annotations["c"] != "d=e" {
		t.Errorf("the manifest is %+v", manifest)
	}

	again := build(t, nil, config, ocitest.Layer(t, "a", "first"), ocitest.Layer(t, "b", "second"))
	if a, b := ocitest.Digest(t, built), ocitest.Digest(t, again); a != b {
		t.Errorf("built twice: %s and %s", a, b)
	}
	swapped := build(t, nil, config, ocitest.Layer(t, "b", "second"), ocitest.Layer(t, "a", "first"))
	if ocitest.Digest(t, swapped) == ocitest.Digest(t, built) {
		t.Error("the order of layers makes no difference")
	}
}

func TestBase(t *testing.T) {
	base := build(t, nil, image.Config{
		OS: "linux", Architecture: "amd64", Entrypoint: []string{"/base"}, Cmd: []string{"old"},
		Env: []image.Pair{{Key: "PATH", Value: "/bin"}, {Key: "LANG", Value: "C"}}, User: "1",
		Labels: []image.Pair{{Key: "a", Value: "old"}, {Key: "b", Value: "kept"}},
	}, ocitest.Layer(t, "a", "base"))
	before := ocitest.Digest(t, base)
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	built := build(t, base, image.Config{
		Created: created, Cmd: []string{"new"}, Env: []image.Pair{{Key: "PATH", Value: "/app:$PATH"}},
		Labels: []image.Pair{{Key: "a", Value: "new"}},
	}, ocitest.Layer(t, "b", "app"))
	file := configOf(t, built)
	want := v1.Config{
		Entrypoint: []string{"/base"}, Cmd: []string{"new"}, Env: []string{"PATH=/app:/bin", "LANG=C"}, User: "1",
		Labels: map[string]string{"a": "new", "b": "kept"},
	}
	if !reflect.DeepEqual(file.Config, want) {
		t.Errorf("the configuration is %+v, want %+v", file.Config, want)
	}
	if !file.Created.Equal(created) || len(file.RootFS.DiffIDs) != 2 || file.Architecture != "amd64" {
		t.Errorf("the configuration is %+v", file)
	}
	if ocitest.Digest(t, base) != before {
		t.Error("building upon the base changed it")
	}
}

func TestRefused(t *testing.T) {
	amd64 := image.Config{OS: "linux", Architecture: "amd64"}
	for title, c := range map[string]struct {
		base   v1.Image
		change func(*image.Config)
		want   string
	}{
		"no architecture":    {change: func(c *image.Config) { c.Architecture = "" }, want: "needs an operating system and an architecture"},
		"base and system":    {base: empty.Image, change: func(c *image.Config) { c.Architecture = "" }, want: "come with the base"},
		"unknown variable":   {change: func(c *image.Config) { c.Env = []image.Pair{{Key: "A", Value: "$B"}} }, want: "the variable A: it uses $B"},
		"relative directory": {change: func(c *image.Config) { c.WorkingDir = "home" }, want: `"home" isn't absolute`},
		"relative volume":    {change: func(c *image.Config) { c.Volumes = []string{"data"} }, want: `"data" isn't absolute`},
		"port 0":             {change: func(c *image.Config) { c.ExposedPorts = []string{"0"} }, want: `"0" is no port`},
		"port 65536":         {change: func(c *image.Config) { c.ExposedPorts = []string{"65536/tcp"} }, want: "is no port"},
		"port's protocol":    {change: func(c *image.Config) { c.ExposedPorts = []string{"80/http"} }, want: "is no port"},
	} {
		config := amd64
		c.change(&config)
		if _, err := image.Build(c.base, config, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", title, err, c.want)
		}
	}
}

func TestCompressedLayers(t *testing.T) {
	plain := ocitest.Tar(t, "a", strings.Repeat("content", 1000))
	var zipped bytes.Buffer
	gz := gzip.NewWriter(&zipped)
	if _, err := gz.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := gz.Close(); err != nil {
		t.Fatal(err)
	}
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	zstandard := encoder.EncodeAll(plain, nil)
	docker := mutate.MediaType(empty.Image, types.DockerManifestSchema2)

	var diffs []string
	for name, content := range map[string][]byte{"a.tar": plain, "a.tar.gz": zipped.Bytes(), "a.tar.zst": zstandard} {
		layer, err := image.OpenLayer(ocitest.File(t, name, content))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		built := build(t, nil, image.Config{OS: "linux", Architecture: "amd64"}, layer)
		diffs = append(diffs, configOf(t, built).RootFS.DiffIDs[0].String())
		if name != "a.tar" {
			layers, err := built.Layers()
			if err != nil {
				t.Fatal(err)
			}
			if size, err := layers[0].Size(); err != nil || size != int64(len(content)) {
				t.Errorf("%s has %d bytes in the image (%v), %d before", name, size, err, len(content))
			}
		}
		_, err = image.Build(docker, image.Config{}, []image.Layer{layer})
		if zst := name == "a.tar.zst"; zst != (err != nil) {
			t.Errorf("%s upon a Docker image: %v", name, err)
		}
	}
	if len(diffs) != 3 || diffs[0] != diffs[1] || diffs[1] != diffs[2] {
		t.Errorf("the same content has the hashes %q", diffs)
	}
	for name, content := range map[string][]byte{
		"cut.tar": plain[:700], "cut.tar.gz": zipped.Bytes()[:30], "cut.tar.zst": zstandard[:30], "text.tar": []byte("this is no tar file"),
		"up.tar": ocitest.Tar(t, "a/../../b", ""), "absolute.tar": ocitest.Tar(t, "/etc/passwd", ""),
	} {
		if _, err := image.OpenLayer(ocitest.File(t, name, content)); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	if _, err := image.OpenLayer("nowhere.tar"); err == nil {
		t.Error("a missing file was taken")
	}
}
