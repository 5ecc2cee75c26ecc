// Package manifest is the sealed record of an object: its name, size, times,
// version and list of chunks, or the fact that it was deleted.
//
// A manifest is a sequence of segments, each sealed by itself: a head, then
// lists of chunks. So a long one can be read and checked in pieces, and
// nothing of it is believed before its segment is authenticated. The format is
// written down in docs/formats.md.
package manifest

import (
	"bytes"
	"cmp"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/chacha20poly1305"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/keys"
	"powercloud.unidatum.com/go/store/chunk"
)

// MaxBlob is the size of the largest manifest that is read, in bytes. It
// leaves room for objects of more than 25 TiB.
const MaxBlob = 256 << 20

// SystemPrefix begins the names of the system's own objects. Those with another slash
// after it are in a folder; see Sealer.FolderStart.
const SystemPrefix = ".powercloud/"

// ErrCorrupt means that a blob isn't an authentic manifest of this cluster
// under its name: it was altered, cut short, or belongs to another name.
var ErrCorrupt = errors.New("manifest is corrupt")

// ErrNewer means that a blob claims to be a manifest of a later version of the
// format. Nothing of it can be checked: a location may have made it up. But it
// may be the newest version of its object, so it is neither replaced nor deleted,
// and neither is what it may need.
var ErrNewer = errors.New("manifest was written by a newer pcctl")

// Version orders the versions of one object: the later time wins, and of two
// with the same time the one with the larger tie-breaker.
type Version struct {
	// Time is when the version was written, in nanoseconds since 1970 UTC.
	Time int64
	// Tie is random.
	Tie [16]byte
}

// Compare returns a negative number when v is older than w, a positive one
// when it is newer, and 0 when they are the same version.
func (v Version) Compare(w Version) int {
	if c := cmp.Compare(v.Time, w.Time); c != 0 {
		return c
	}
	return bytes.Compare(v.Tie[:], w.Tie[:])
}

// Next returns a version that is newer than v, dated now if now is later.
func (v Version) Next(now time.Time, random io.Reader) (Version, error) {
	next := Version{Time: now.UnixNano()}
	if next.Time <= v.Time {
		next.Time = v.Time + 1
	}
	if _, err := io.ReadFull(random, next.Tie[:]); err != nil {
		return Version{}, fmt.Errorf("reading random bytes for a version: %w", err)
	}
	return next, nil
}

// Manifest describes one version of an object.
type Manifest struct {
	// Name is the object's name.
	Name string
	// Version orders this manifest among those of the same name.
	Version Version
	// Deleted marks a tombstone: the object was removed. Size, FileTime,
	// FileMode and Chunks are then zero.
	Deleted bool
	// Size is the object's size in bytes.
	Size int64
	// FileTime is the modification time of the file that the object was
	// read from, in nanoseconds since 1970 UTC, or 0 when there was none.
	FileTime int64
	// FileMode holds the Unix permission bits of that file, or 0.
	FileMode uint32
	// Chunks lists the object's chunks in order.
	Chunks []chunk.Ref
}

// ChunkSize returns the plaintext size of the object's chunk with the given
// index, in bytes.
func (m *Manifest) ChunkSize(index int) int {
	if index < len(m.Chunks)-1 {
		return chunk.Size
	}
	return int(m.Size - int64(index)*chunk.Size)
}

// Sealer seals and opens the manifests of one cluster. It may be used by
// several goroutines at once.
type Sealer struct {
	aead  cipher.AEAD
	names sync.Pool // of hash.Hash
}

// NewSealer derives a cluster's manifest keys from its root key.
func NewSealer(root *keys.Root) (*Sealer, error) {
	sealKey := root.Derive(keys.PurposeManifestSeal)
	defer clear(sealKey)
	aead, err := chacha20poly1305.NewX(sealKey)
	if err != nil {
		return nil, fmt.Errorf("manifest cipher: %w", err)
	}
	s := &Sealer{aead: aead}
	nameKey := root.Derive(keys.PurposeManifestID)
	s.names.New = func() any { return hmac.New(sha256.New, nameKey) }
	return s, nil
}

// BlobName returns the name of the blob that holds an object's manifest:
// HMAC-SHA256 of the object's name, which in a folder of the system's own begins
// with that folder's start.
func (s *Sealer) BlobName(object string) blob.Name {
	name := blob.Name{Kind: blob.KindManifest, ID: s.mac(object)}
	if folder := folder(object); folder != "" {
		start := s.FolderStart(folder)
		copy(name.ID[:], start[:])
	}
	return name
}

// FolderStart returns the bytes that the blob IDs of all manifests in a folder of the
// system's own begin with: a zero, and the first 7 bytes of the HMAC-SHA256 of the
// folder, such as ".powercloud/registry/". So who looks for what is in it needn't go
// through all manifests that there are: a location lists those that begin with a zero
// first.
func (s *Sealer) FolderStart(folder string) (start [8]byte) {
	sum := s.mac(folder)
	copy(start[1:], sum[:])
	return start
}

// folder returns the folder of the system's own that an object is in, with the slash at
// its end, or nothing.
func folder(object string) string {
	below, ok := strings.CutPrefix(object, SystemPrefix)
	if !ok {
		return ""
	}
	name, _, ok := strings.Cut(below, "/")
	if !ok {
		return ""
	}
	return SystemPrefix + name + "/"
}

func (s *Sealer) mac(text string) (sum [sha256.Size]byte) {
	mac := s.names.Get().(hash.Hash)
	defer s.names.Put(mac)
	mac.Reset()
	mac.Write([]byte(text))
	mac.Sum(sum[:0])
	return sum
}
