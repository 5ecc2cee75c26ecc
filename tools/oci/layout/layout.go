// Package layout writes and reads images as OCI image layouts: folders with the
// files oci-layout, index.json, and blobs named by their hashes.
package layout

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Content is what a layout holds: either an image or an index of images.
type Content struct {
	// Descriptor names it by its hash.
	Descriptor v1.Descriptor
	// Image is nil in a layout that holds an index, and Index in the other.
	Image v1.Image
	Index v1.ImageIndex
}

// Taggable is the content as something to be pushed.
func (c Content) Taggable() remote.Taggable {
	if c.Image != nil {
		return c.Image
	}
	return c.Index
}

// WriteImage writes a layout that holds one image. The folder may exist, and
// must be empty.
func WriteImage(path string, image v1.Image) error {
	return write(path, func(to layout.Path) error { return to.AppendImage(image) })
}

// WriteIndex writes a layout that holds one index and its images. The folder
// may exist, and must be empty.
func WriteIndex(path string, index v1.ImageIndex) error {
	return write(path, func(to layout.Path) error { return to.AppendIndex(index) })
}

func write(path string, add func(layout.Path) error) error {
	entries, err := os.ReadDir(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write an image: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("write an image: %s isn't empty", path)
	}
	to, err := layout.Write(path, empty.Index)
	if err != nil {
		return fmt.Errorf("write an image: %w", err)
	}
	if err := add(to); err != nil {
		return fmt.Errorf("write an image: %w", err)
	}
	return nil
}

// Open reads a layout that holds one image or one index, and checks that
// everything which it names is there and has the hash and size by which it is
// named.
func Open(path string) (Content, error) {
	content, err := folder(path).open()
	if err != nil {
		return Content{}, fmt.Errorf("read the image in %s: %w", path, err)
	}
	return content, nil
}

func (f folder) open() (Content, error) {
	if err := f.checkVersion(); err != nil {
		return Content{}, err
	}
	raw, err := readBounded(filepath.Join(string(f), "index.json"))
	if err != nil {
		return Content{}, err
	}
	top, err := parseIndex(raw)
	if err != nil {
		return Content{}, err
	}
	if len(top.Manifests) != 1 {
		return Content{}, fmt.Errorf("index.json names %d images instead of one", len(top.Manifests))
	}
	return f.content(top.Manifests[0], 0)
}

func isIndex(kind types.MediaType) bool {
	return kind == types.OCIImageIndex || kind == types.DockerManifestList
}

func isImage(kind types.MediaType) bool {
	return kind == types.OCIManifestSchema1 || kind == types.DockerManifestSchema2
}

// Join makes an index of images, each of which must be for another platform.
func Join(images []v1.Image) (v1.ImageIndex, error) {
	if len(images) == 0 {
		return nil, errors.New("an index needs an image")
	}
	seen := map[string]bool{}
	var additions []mutate.IndexAddendum
	for _, image := range images {
		file, err := image.ConfigFile()
		if err != nil {
			return nil, fmt.Errorf("read an image's configuration: %w", err)
		}
		platform := file.Platform()
		if platform == nil || platform.OS == "" || platform.Architecture == "" {
			return nil, errors.New("an image in an index must say what platform it is for")
		}
		if seen[platform.String()] {
			return nil, fmt.Errorf("two images are for %s", platform)
		}
		seen[platform.String()] = true
		descriptor, err := partial.Descriptor(image)
		if err != nil {
			return nil, fmt.Errorf("describe an image: %w", err)
		}
		descriptor.Platform = platform
		descriptor.ArtifactType = "" // It is an image, which needs no other name.
		additions = append(additions, mutate.IndexAddendum{Add: image, Descriptor: *descriptor})
	}
	return mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), additions...), nil
}
