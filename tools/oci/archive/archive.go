// Package archive writes an image as the one file that container engines load.
package archive

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"powercloud.unidatum.com/tools/oci/layout"
)

// The formats of an archive.
const (
	// Docker is what every engine loads. It has one image.
	Docker = "docker"
	// OCI is a layout as it is; not every engine loads it. It may have an index.
	OCI = "oci"
)

// Annotations by which engines name what they load from a layout.
const (
	nameAnnotation = "io.containerd.image.name"
	tagAnnotation  = "org.opencontainers.image.ref.name"
)

// Check tells why the content can't be written in this format, if it can't.
func Check(content layout.Content, format string, tags []name.Tag) error {
	switch {
	case format != Docker && format != OCI:
		return fmt.Errorf("unknown format %q: it is docker or oci", format)
	case len(tags) == 0:
		return errors.New("an image can't be loaded without a name: give it a tag")
	case format == Docker && content.Image == nil:
		return errors.New("an index can't be loaded in the format docker; use the format oci")
	}
	return nil
}

// Write writes the content of the layout in the folder, under these tags.
func Write(to io.Writer, content layout.Content, folder, format string, tags []name.Tag) error {
	err := Check(content, format, tags)
	switch {
	case err != nil:
	case format == Docker:
		err = writeDocker(to, content.Image, tags)
	default:
		err = writeOCI(to, content, folder, tags)
	}
	if err != nil {
		return fmt.Errorf("write an archive: %w", err)
	}
	return nil
}

// writeDocker writes what tarball.MultiRefWrite would, but with the tags in an
// order that doesn't change.
func writeDocker(to io.Writer, image v1.Image, tags []name.Tag) error {
	configName, err := image.ConfigName()
	if err != nil {
		return err
	}
	config, err := image.RawConfigFile()
	if err != nil {
		return err
	}
	layers, err := image.Layers()
	if err != nil {
		return err
	}
	manifest := tarball.Descriptor{Config: configName.String()}
	for _, tag := range tags {
		manifest.RepoTags = append(manifest.RepoTags, tag.String())
	}
	out := tar.NewWriter(to)
	if err := addBytes(out, manifest.Config, config); err != nil {
		return err
	}
	written := map[string]bool{}
	for _, layer := range layers {
		digest, err := layer.Digest()
		if err != nil {
			return err
		}
		name := digest.Hex + ".tar.gz"
		manifest.Layers = append(manifest.Layers, name)
		if written[name] {
			continue
		}
		written[name] = true
		if err := addLayer(out, name, layer); err != nil {
			return err
		}
	}
	top, err := json.Marshal(tarball.Manifest{manifest})
	if err != nil {
		return err
	}
	if err := addBytes(out, "manifest.json", top); err != nil {
		return err
	}
	return out.Close()
}

func addLayer(out *tar.Writer, name string, layer v1.Layer) error {
	size, err := layer.Size()
	if err != nil {
		return err
	}
	content, err := layer.Compressed()
	if err != nil {
		return err
	}
	return errors.Join(addStream(out, name, size, content), content.Close())
}

func writeOCI(to io.Writer, content layout.Content, folder string, tags []name.Tag) error {
	index := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex}
	for _, tag := range tags {
		descriptor := content.Descriptor
		descriptor.Annotations = map[string]string{nameAnnotation: tag.Name(), tagAnnotation: tag.TagStr()}
		index.Manifests = append(index.Manifests, descriptor)
	}
	top, err := json.Marshal(index)
	if err != nil {
		return err
	}
	blobs, err := filepath.Glob(filepath.Join(folder, "blobs", "sha256", "*"))
	if err != nil {
		return err
	}
	slices.Sort(blobs)
	out := tar.NewWriter(to)
	if err := add(out, "oci-layout", filepath.Join(folder, "oci-layout")); err != nil {
		return err
	}
	if err := addBytes(out, "index.json", top); err != nil {
		return err
	}
	for _, blob := range blobs {
		if err := add(out, "blobs/sha256/"+filepath.Base(blob), blob); err != nil {
			return err
		}
	}
	return out.Close()
}

func addBytes(out *tar.Writer, name string, content []byte) error {
	return addStream(out, name, int64(len(content)), bytes.NewReader(content))
}

// add adds a file.
func add(out *tar.Writer, name, from string) error {
	file, err := os.Open(from)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	return addStream(out, name, info.Size(), file)
}

// addStream adds a file of this size. The tar writer fails when the content has
// another one.
func addStream(out *tar.Writer, name string, size int64, content io.Reader) error {
	if err := out.WriteHeader(&tar.Header{Name: name, Size: size, Mode: 0o644, Typeflag: tar.TypeReg}); err != nil {
		return err
	}
	_, err := io.Copy(out, content)
	return err
}
