package layout

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
)

const (
	// maxDocument is the largest manifest, index or configuration, in bytes,
	// that is read. Registries take no larger ones.
	maxDocument = 4 << 20
	// maxDepth is how deep indices may lie in indices.
	maxDepth = 2
	// maxEntries is how many images an index, and layers an image, may have.
	maxEntries = 256
)

// checkVersion reads the file that makes a folder a layout.
func (f folder) checkVersion() error {
	raw, err := readBounded(filepath.Join(string(f), "oci-layout"))
	if err != nil {
		return err
	}
	var file struct {
		Version string `json:"imageLayoutVersion"`
	}
	if err := decode(raw, &file); err != nil {
		return fmt.Errorf("oci-layout: %w", err)
	}
	if file.Version != "1.0.0" {
		return fmt.Errorf("oci-layout has the version %q instead of 1.0.0", file.Version)
	}
	return nil
}

// folder is the folder of a layout.
type folder string

// blob returns the path of a blob.
func (f folder) blob(digest v1.Hash) string {
	return filepath.Join(string(f), "blobs", digest.Algorithm, digest.Hex)
}

// index reads the index that a descriptor names, with all that it names itself,
// at this depth.
func (f folder) index(descriptor v1.Descriptor, depth int) (v1.ImageIndex, error) {
	if depth >= maxDepth {
		return nil, errors.New("an index lies too deep in others")
	}
	raw, err := f.document(descriptor)
	if err != nil {
		return nil, err
	}
	manifest, err := parseIndex(raw)
	if err != nil {
		return nil, err
	}
	stored := &storedIndex{
		kind: descriptor.MediaType, raw: raw, manifest: manifest,
		images: map[v1.Hash]v1.Image{}, indices: map[v1.Hash]v1.ImageIndex{},
	}
	for _, named := range manifest.Manifests {
		content, err := f.content(named, depth+1)
		if err != nil {
			return nil, err
		}
		if content.Image != nil {
			stored.images[named.Digest] = content.Image
		} else {
			stored.indices[named.Digest] = content.Index
		}
	}
	return stored, nil
}

// content reads what a descriptor names: an image, or an index at this depth.
func (f folder) content(descriptor v1.Descriptor, depth int) (Content, error) {
	content := Content{Descriptor: descriptor}
	var err error
	switch {
	case isIndex(descriptor.MediaType):
		content.Index, err = f.index(descriptor, depth)
	case isImage(descriptor.MediaType):
		content.Image, err = f.image(descriptor)
	default:
		err = fmt.Errorf("%s has the media type %q, which is that of no image", descriptor.Digest, descriptor.MediaType)
	}
	return content, err
}

// parseIndex parses an index.
func parseIndex(raw []byte) (*v1.IndexManifest, error) {
	var index v1.IndexManifest
	if err := decode(raw, &index); err != nil {
		return nil, fmt.Errorf("an index: %w", err)
	}
	if index.SchemaVersion != 2 {
		return nil, fmt.Errorf("an index has the version %d instead of 2", index.SchemaVersion)
	}
	if len(index.Manifests) > maxEntries {
		return nil, fmt.Errorf("an index names more than %d images", maxEntries)
	}
	return &index, nil
}

// image reads the image that a descriptor names.
func (f folder) image(descriptor v1.Descriptor) (v1.Image, error) {
	raw, err := f.document(descriptor)
	if err != nil {
		return nil, err
	}
	var manifest v1.Manifest
	if err := decode(raw, &manifest); err != nil {
		return nil, fmt.Errorf("a manifest: %w", err)
	}
	if manifest.SchemaVersion != 2 {
		return nil, fmt.Errorf("a manifest has the version %d instead of 2", manifest.SchemaVersion)
	}
	if len(manifest.Layers) > maxEntries {
		return nil, fmt.Errorf("an image has more than %d layers", maxEntries)
	}
	rawConfig, err := f.document(manifest.Config)
	if err != nil {
		return nil, err
	}
	var config v1.ConfigFile
	if err := decode(rawConfig, &config); err != nil {
		return nil, fmt.Errorf("a configuration: %w", err)
	}
	if len(config.RootFS.DiffIDs) != len(manifest.Layers) {
		return nil, fmt.Errorf("an image's configuration names %d layers, its manifest %d", len(config.RootFS.DiffIDs), len(manifest.Layers))
	}
	for _, layer := range manifest.Layers {
		if err := f.copyBlob(io.Discard, layer); err != nil {
			return nil, err
		}
	}
	return partial.CompressedToImage(&storedImage{
		folder: f, kind: descriptor.MediaType, manifest: raw, config: rawConfig, layers: manifest.Layers,
	})
}

// document reads a small blob.
func (f folder) document(descriptor v1.Descriptor) ([]byte, error) {
	if descriptor.Size > maxDocument {
		return nil, fmt.Errorf("%s has %d bytes; a manifest or configuration has %d at most", descriptor.Digest, descriptor.Size, maxDocument)
	}
	var content bytes.Buffer
	err := f.copyBlob(&content, descriptor)
	return content.Bytes(), err
}

// copyBlob copies a blob, and fails when it isn't the one that is named.
func (f folder) copyBlob(to io.Writer, descriptor v1.Descriptor) error {
	if descriptor.Digest.Algorithm != "sha256" || len(descriptor.Digest.Hex) != hex.EncodedLen(sha256.Size) {
		return fmt.Errorf("the blob %q isn't named by a SHA-256", descriptor.Digest)
	}
	if descriptor.Size < 0 {
		return fmt.Errorf("the blob %s has the size %d", descriptor.Digest, descriptor.Size)
	}
	file, err := os.Open(f.blob(descriptor.Digest))
	if err != nil {
		return fmt.Errorf("a blob that the image names: %w", err)
	}
	defer file.Close()
	hash := sha256.New()
	// One byte more shows a file that is longer.
	n, err := io.Copy(io.MultiWriter(to, hash), io.LimitReader(file, descriptor.Size+1))
	if err != nil {
		return fmt.Errorf("a blob that the image names: %w", err)
	}
	if n != descriptor.Size || hex.EncodeToString(hash.Sum(nil)) != descriptor.Digest.Hex {
		return fmt.Errorf("the blob %s isn't what its name and size say", descriptor.Digest)
	}
	return nil
}

// readBounded reads a small file.
func readBounded(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxDocument+1))
	if err == nil && len(content) > maxDocument {
		err = fmt.Errorf("%s has more than %d bytes", name, maxDocument)
	}
	return content, err
}

// decode parses one JSON value. Fields that are unknown are left alone, as the
// format wants it, so that newer versions of it can be read.
func decode(raw []byte, to any) error {
	if err := json.Unmarshal(raw, to); err != nil {
		return fmt.Errorf("it isn't the JSON that it should be: %w", err)
	}
	return nil
}
