package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// A Layer is a tar file to be put into an image.
type Layer struct {
	name  string
	layer v1.Layer
	zstd  bool
}

// OpenLayer reads a layer from a tar file, which may be compressed with gzip or
// zstd; its name says so. One that isn't is compressed with gzip. The file is
// read through, and refused when it isn't a whole tar file or when a name in it
// leads out of the image.
func OpenLayer(name string) (Layer, error) {
	zstd := strings.HasSuffix(name, ".zst") || strings.HasSuffix(name, ".tzst")
	kind := types.OCILayer
	if zstd {
		kind = types.OCILayerZStd
	}
	layer, err := tarball.LayerFromFile(name, tarball.WithMediaType(kind))
	if err != nil {
		return Layer{}, fmt.Errorf("read the layer %s: %w", name, err)
	}
	content, err := layer.Uncompressed()
	if err != nil {
		return Layer{}, fmt.Errorf("unpack the layer %s: %w", name, err)
	}
	err = checkTar(content)
	if err := errors.Join(err, content.Close()); err != nil {
		return Layer{}, fmt.Errorf("the layer %s: %w", name, err)
	}
	return Layer{filepath.Base(name), layer, zstd}, nil
}

// kind is the layer's media type in an image of this media type.
func (l Layer) kind(image types.MediaType) (types.MediaType, error) {
	switch {
	case image != types.DockerManifestSchema2 && l.zstd:
		return types.OCILayerZStd, nil
	case image != types.DockerManifestSchema2:
		return types.OCILayer, nil
	case l.zstd:
		return "", fmt.Errorf("the layer %s is compressed with zstd, which the base's format doesn't know", l.name)
	}
	return types.DockerLayer, nil
}

// checkTar reads a tar file to its end.
func checkTar(content io.Reader) error {
	archive := tar.NewReader(content)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			// What follows the end mark is padding. It is part of the layer's
			// hash, so an error in reading it counts.
			_, err := io.Copy(io.Discard, content)
			return err
		}
		if err != nil {
			return fmt.Errorf("it is no tar file: %w", err)
		}
		names := []string{header.Name}
		if header.Typeflag == tar.TypeLink {
			names = append(names, header.Linkname)
		}
		for _, name := range names {
			if path.IsAbs(name) || slices.Contains(strings.Split(name, "/"), "..") {
				return fmt.Errorf("the name %q leads out of the image", name)
			}
		}
		if _, err := io.Copy(io.Discard, archive); err != nil {
			return fmt.Errorf("the content of %q: %w", header.Name, err)
		}
	}
}
