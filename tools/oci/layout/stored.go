package layout

import (
	"fmt"
	"io"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// storedImage is an image in a layout. The library's own reader refuses blobs
// that are symbolic links, which in Bazel's sandbox all of them are.
type storedImage struct {
	folder           folder
	kind             types.MediaType
	manifest, config []byte
	layers           []v1.Descriptor
}

var _ partial.CompressedImageCore = (*storedImage)(nil)

func (s *storedImage) MediaType() (types.MediaType, error) { return s.kind, nil }
func (s *storedImage) RawManifest() ([]byte, error)        { return s.manifest, nil }
func (s *storedImage) RawConfigFile() ([]byte, error)      { return s.config, nil }

func (s *storedImage) LayerByDigest(digest v1.Hash) (partial.CompressedLayer, error) {
	for _, layer := range s.layers {
		if layer.Digest == digest {
			return storedLayer{s.folder, layer}, nil
		}
	}
	return nil, fmt.Errorf("the image has no layer %s", digest)
}

// storedLayer is a layer in a layout.
type storedLayer struct {
	folder     folder
	descriptor v1.Descriptor
}

func (s storedLayer) Digest() (v1.Hash, error)            { return s.descriptor.Digest, nil }
func (s storedLayer) Size() (int64, error)                { return s.descriptor.Size, nil }
func (s storedLayer) MediaType() (types.MediaType, error) { return s.descriptor.MediaType, nil }
func (s storedLayer) Compressed() (io.ReadCloser, error) {
	return os.Open(s.folder.blob(s.descriptor.Digest))
}
func (s storedLayer) Descriptor() (*v1.Descriptor, error) { return s.descriptor.DeepCopy(), nil }

// storedIndex is an index in a layout, with all that it names.
type storedIndex struct {
	kind     types.MediaType
	raw      []byte
	manifest *v1.IndexManifest
	images   map[v1.Hash]v1.Image
	indices  map[v1.Hash]v1.ImageIndex
}

var _ v1.ImageIndex = (*storedIndex)(nil)

func (s *storedIndex) MediaType() (types.MediaType, error)       { return s.kind, nil }
func (s *storedIndex) Digest() (v1.Hash, error)                  { return partial.Digest(s) }
func (s *storedIndex) Size() (int64, error)                      { return partial.Size(s) }
func (s *storedIndex) RawManifest() ([]byte, error)              { return s.raw, nil }
func (s *storedIndex) IndexManifest() (*v1.IndexManifest, error) { return s.manifest.DeepCopy(), nil }

func (s *storedIndex) Image(digest v1.Hash) (v1.Image, error) {
	if image, ok := s.images[digest]; ok {
		return image, nil
	}
	return nil, fmt.Errorf("the index has no image %s", digest)
}

func (s *storedIndex) ImageIndex(digest v1.Hash) (v1.ImageIndex, error) {
	if index, ok := s.indices[digest]; ok {
		return index, nil
	}
	return nil, fmt.Errorf("the index has no index %s", digest)
}
