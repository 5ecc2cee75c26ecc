// Package catalog remembers what manifests say, on the machine that runs pcctl,
// so that going through all objects costs a listing and what has changed since.
//
// For every copy of a manifest it knows which version the copy was when the
// location gave it a certain version mark, and it keeps the newest version as it
// is stored, sealed. It is a cache: sealed itself, never the only place of
// anything, and deleted without harm. What can't be read counts as empty.
//
// The format is written down in docs/formats.md.
package catalog

import (
	"crypto/cipher"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/crypto/chacha20poly1305"

	"powercloud.unidatum.com/go/keys"
	"powercloud.unidatum.com/go/store/manifest"
)

// MaxManifest is the size of the largest manifest that is kept, in bytes.
const MaxManifest = 256 << 10

// Key is a manifest's blob ID.
type Key = [32]byte

// LocationKey stands for a location: the first bytes of a hash of what it is
// called.
type LocationKey [8]byte

// Location returns a location's key.
func Location(name string) LocationKey {
	sum := sha256.Sum256([]byte(name))
	return LocationKey(sum[:])
}

// markHash stands for a version mark.
type markHash [16]byte

func hashMark(mark string) markHash {
	sum := sha256.Sum256([]byte(mark))
	return markHash(sum[:])
}

// Catalog is one cluster's, in a directory. It may be used by several goroutines
// at once. Several processes that use it at a time don't harm it, but lose each
// other's additions.
type Catalog struct {
	dir  string
	aead cipher.AEAD
}

// New returns the catalog in a directory of its own, which is made when something
// is first saved.
func New(dir string, root *keys.Root) (*Catalog, error) {
	sealKey := root.Derive(keys.PurposeCatalogSeal)
	defer clear(sealKey)
	aead, err := chacha20poly1305.NewX(sealKey)
	if err != nil {
		return nil, fmt.Errorf("catalog cipher: %w", err)
	}
	return &Catalog{dir: dir, aead: aead}, nil
}

// Shard is what a catalog knows of the manifests whose blob IDs begin with one
// byte. It may be used by several goroutines at once.
type Shard struct {
	first byte

	mu      sync.Mutex
	entries map[Key]*entry
	// sections has the marks with which locations listed what is known of them.
	sections map[LocationKey]markHash
	changed  bool
}

// entry is what is known of one manifest.
type entry struct {
	copies []copyState
	// blob is the newest version, sealed.
	blob []byte
	// used is set when this process asked for the entry or set it.
	used bool
}

// copyState says which version a location's copy with some mark is.
type copyState struct {
	location LocationKey
	mark     markHash
	version  manifest.Version
}

// Load returns a shard. One that can't be read is empty.
func (c *Catalog) Load(first byte) *Shard {
	s := &Shard{first: first, entries: map[Key]*entry{}, sections: map[LocationKey]markHash{}}
	sealed, err := readLimited(c.path(first))
	if err != nil {
		return s
	}
	content, err := c.open(first, sealed)
	if err != nil {
		return s
	}
	if entries, sections, err := parse(content); err == nil {
		s.entries, s.sections = entries, sections
	}
	return s
}

// Unchanged reports whether the shard knows all copies that a location listed when
// its section had the given mark; see blob.Sections.
func (s *Shard) Unchanged(location LocationKey, mark string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.sections[location]
	return ok && known == hashMark(mark)
}

// At returns the blob IDs of the manifests of which a copy at a location is known.
func (s *Shard) At(location LocationKey) []Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []Key
	for id, e := range s.entries {
		if e.at(location) >= 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// at returns the index of a location's copy, or -1.
func (e *entry) at(location LocationKey) int {
	return slices.IndexFunc(e.copies, func(c copyState) bool { return c.location == location })
}

// readLimited reads a file unless it is larger than a shard can be.
func readLimited(path string) ([]byte, error) {
	// Looked at before it is opened: opening a pipe would wait for its writer.
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errMalformed
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err = file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxShard {
		return nil, errMalformed
	}
	sealed := make([]byte, info.Size())
	_, err = io.ReadFull(file, sealed)
	return sealed, err
}

// Version returns which version a location's copy of a manifest is, if it has the
// given mark now and had it when that was found out.
func (s *Shard) Version(id Key, location LocationKey, mark string) (manifest.Version, bool) {
	version, at, ok := s.copy(id, location)
	return version, ok && at == hashMark(mark)
}

// UnchangedVersion is Version for a copy at a location where nothing has changed.
func (s *Shard) UnchangedVersion(id Key, location LocationKey) (manifest.Version, bool) {
	version, _, ok := s.copy(id, location)
	return version, ok
}

func (s *Shard) copy(id Key, location LocationKey) (manifest.Version, markHash, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[id]
	if e == nil {
		return manifest.Version{}, markHash{}, false
	}
	e.used = true
	i := e.at(location)
	if i < 0 {
		return manifest.Version{}, markHash{}, false
	}
	return e.copies[i].version, e.copies[i].mark, true
}

// Gone enters that a location has no copy of a manifest.
func (s *Shard) Gone(id Key, location LocationKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[id]; e != nil && e.drop(location) {
		s.changed = true
	}
}

// drop drops what is known of a location's copy, and reports whether that was
// anything.
func (e *entry) drop(location LocationKey) bool {
	i := e.at(location)
	if i >= 0 {
		e.copies = slices.Delete(e.copies, i, i+1)
	}
	return i >= 0
}

// Blob returns the newest version of a manifest that was seen, as it is stored, or
// nil. The caller must not change it.
func (s *Shard) Blob(id Key) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[id]; e != nil {
		return e.blob
	}
	return nil
}

// Copy is a location's copy of a manifest that was authenticated.
type Copy struct {
	Location LocationKey
	// Mark is the location's version mark from before the copy was read.
	Mark string
	// Unchanged says instead that nothing has changed at the location, so that the
	// mark is the one that is known.
	Unchanged bool
	Version   manifest.Version
}

// Set enters what was read of a manifest: its newest version as it is stored,
// which the shard keeps, and the copies at the locations that were asked. What is
// known of other locations stays. It reports whether it knows all these copies now.
func (s *Shard) Set(id Key, blob []byte, copies []Copy, asked []LocationKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := &entry{blob: blob, used: true}
	before := s.entries[id]
	if before == nil {
		before = &entry{}
	}
	for _, c := range before.copies {
		if !slices.Contains(asked, c.location) {
			e.copies = append(e.copies, c)
		}
	}
	all := true
	for _, c := range copies {
		state := copyState{c.Location, hashMark(c.Mark), c.Version}
		if c.Unchanged {
			i := before.at(c.Location)
			if i < 0 || before.copies[i].version != c.Version {
				all = false // It has changed after all.
				continue
			}
			state = before.copies[i]
		}
		e.copies = append(e.copies, state)
	}
	if len(e.copies) > maxCopies || len(blob) == 0 || len(blob) > MaxManifest {
		return false
	}
	s.entries[id], s.changed = e, true
	return all
}

// Listing says that a location has listed its copies.
type Listing struct {
	Location LocationKey
	// Mark is the mark of its section from before that, if the shard knows all the
	// copies that it listed and no others, or "".
	Mark string
}

// forget drops what is known of copies that were neither asked for nor set, at
// locations that were listed: they are gone.
func (s *Shard) forget(listed []Listing) {
	for id, e := range s.entries {
		if e.used {
			continue
		}
		for _, l := range listed {
			if e.drop(l.Location) {
				s.changed = true
			}
		}
		if len(e.copies) == 0 {
			delete(s.entries, id)
			s.changed = true
		}
	}
}

// enterMarks enters the marks of the locations' sections.
func (s *Shard) enterMarks(listed []Listing) {
	for _, l := range listed {
		known, ok := s.sections[l.Location]
		switch {
		case l.Mark == "" && ok:
			delete(s.sections, l.Location)
		case l.Mark != "" && (!ok || known != hashMark(l.Mark)) && len(s.sections) < maxCopies:
			s.sections[l.Location] = hashMark(l.Mark)
		default:
			continue
		}
		s.changed = true
	}
}

// Save stores a shard, if it has changed, in which whatever the listed locations
// have was asked for or set.
func (c *Catalog) Save(s *Shard, listed []Listing) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(listed)
	s.enterMarks(listed)
	if !s.changed {
		return nil
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		// Where nothing can be kept, as without a home directory, every run
		// has to read all: no reason to complain each time.
		return nil
	}
	sealed, err := c.seal(s.first, appendShard(nil, s.entries, s.sections))
	if err != nil {
		return err
	}
	if err := c.write(s.first, sealed); err != nil {
		return fmt.Errorf("saving the catalog of objects: %w", err)
	}
	s.changed = false
	return nil
}

// write replaces a shard's file. It is not synced, and of two processes that write
// at a time one may take away the other's temporary file, or move it to its place
// half written: a file that comes out torn is not authentic, and so empty. A name
// of its own for each writer would leave files behind for good.
func (c *Catalog) write(first byte, sealed []byte) error {
	temporary := c.path(first) + ".tmp"
	err := writeNew(temporary, sealed)
	if errors.Is(err, fs.ErrExist) {
		return nil // Another process has begun just now.
	}
	if err == nil {
		err = os.Rename(temporary, c.path(first))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // Another process has moved or removed it.
	}
	if err != nil {
		if removeErr := os.Remove(temporary); removeErr != nil && !errors.Is(removeErr, fs.ErrNotExist) {
			err = errors.Join(err, removeErr)
		}
	}
	return err
}

// writeNew writes a file in place of what is there, and never into it: that may be
// another process's, a link or a pipe.
func writeNew(path string, content []byte) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	return err
}

// path returns where a shard is stored.
func (c *Catalog) path(first byte) string {
	return filepath.Join(c.dir, hex.EncodeToString([]byte{first}))
}
