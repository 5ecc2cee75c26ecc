// Package store keeps objects in an encrypted, deduplicating form at several
// untrusted locations.
//
// An object is cut into chunks, each sealed and stored under a name that
// follows from its content, and a sealed manifest that names the object and
// lists its chunks. Every blob goes to all locations and must reach a quorum
// of them. What is read is authenticated before it is used, the newest version
// wins, and a location that can't answer never counts as one that answered no.
package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/quorum"
	"powercloud.unidatum.com/go/keys"
	"powercloud.unidatum.com/go/store/catalog"
	"powercloud.unidatum.com/go/store/chunk"
	"powercloud.unidatum.com/go/store/grace"
	"powercloud.unidatum.com/go/store/lost"
	"powercloud.unidatum.com/go/store/manifest"
	"powercloud.unidatum.com/go/store/newest"
	"powercloud.unidatum.com/go/store/rollback"
	"powercloud.unidatum.com/go/store/tombstones"
)

// ErrNotFound means that every location answered and none has the object, or
// that it was deleted.
var ErrNotFound = newest.ErrNotFound

// MaxName is the longest name of an object, in bytes.
const MaxName = 2048

// SystemPrefix begins the names of the system's own objects, such as the registry of
// nodes. They are stored like any other; whoever stores or removes objects for a
// user must refuse these names.
const SystemPrefix = manifest.SystemPrefix

// IsSystem reports whether an object of the name is the system's own.
func IsSystem(name string) bool { return strings.HasPrefix(name, SystemPrefix) }

// Object describes a stored object.
type Object struct {
	// Name is the object's name.
	Name string
	// Size is the object's size in bytes.
	Size int64
	// Chunks is the number of its chunks.
	Chunks int
	// Modified is when this version of the object was stored.
	Modified time.Time
	// FileTime is the modification time of the file that was stored, or
	// the zero time when it came from a stream.
	FileTime time.Time
	// FileMode holds that file's permission bits, or 0.
	FileMode fs.FileMode
}

// Progress is told how far a long piece of work has come. Its methods are
// called from several goroutines at once.
type Progress interface {
	// Expect adds to the amount of work that is known to lie ahead, in
	// bytes, or in the unit that the work states.
	Expect(n int64)
	// Done adds to the amount of work that is done.
	Done(n int64)
}

// Options are what a Store takes from its surroundings. The zero value is
// right outside tests.
type Options struct {
	// Now tells the time; time.Now when nil.
	Now func() time.Time
	// Random is a source of random bytes; crypto/rand.Reader when nil.
	Random io.Reader
	// Workers is the number of chunks that are worked on at once, but for small
	// ones; chosen from the number of processors, and the locations, when 0.
	// Each takes 8 MiB of memory.
	Workers int
	// Catalog is what is known of manifests already, or nil.
	Catalog *catalog.Catalog
	// Guard compares what is read with the nodes' record of versions; nil where
	// the cluster has no consensus.
	Guard *rollback.Guard
	// Warn is told, in a line, what went wrong without making the work
	// fail; it may be nil.
	Warn func(string)
}

// remoteWorkers is the number of chunks that are worked on at once for locations
// that are far away.
const remoteWorkers = 16

// SmallObject is the size up to which an object counts as small, in bytes.
const SmallObject = 64 << 10

// ObjectsAtOnce returns how many small objects are worth reading at once: those of
// a directory wait for the disk, those of a bucket for the network.
func (s *Store) ObjectsAtOnce() int {
	const nearby = 8
	return max(nearby, s.set.Concurrency())
}

// Store is the object store of one cluster. It may be used by several
// goroutines at once.
type Store struct {
	set        *quorum.Set
	chunks     *chunk.Sealer
	manifests  *manifest.Sealer
	finder     *newest.Finder
	keeper     *grace.Keeper
	lost       *lost.Keeper
	tombstones *tombstones.Keeper
	buffers    *buffers
	// small are buffers for small objects, of which more are worked on at once.
	small   *buffers
	options Options
	// doubted is done once somebody was warned that too few locations answer.
	doubted sync.Once

	mu sync.Mutex
	// removed are manifests in the system's folders whose objects are known to be
	// removed, which they stay.
	removed map[[blob.IDSize]byte]bool
	// said are the warnings that needn't be repeated.
	said map[string]bool
}

// New returns the store of the cluster with the given root key at the
// locations of a set.
func New(set *quorum.Set, root *keys.Root, options Options) (*Store, error) {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Random == nil {
		options.Random = rand.Reader
	}
	if options.Workers == 0 {
		// More than there are processors: while some wait for a disk to
		// sync, others compute.
		options.Workers = min(2*runtime.GOMAXPROCS(0), 8)
		if set.Concurrency() > options.Workers {
			options.Workers = remoteWorkers
		}
	}
	if options.Warn == nil {
		options.Warn = func(string) {}
	}
	chunks, err := chunk.NewSealer(root)
	if err != nil {
		return nil, err
	}
	manifests, err := manifest.NewSealer(root)
	if err != nil {
		return nil, err
	}
	keeper, err := grace.NewKeeper(set, root)
	if err != nil {
		return nil, err
	}
	lost, err := lost.NewKeeper(set, root)
	if err != nil {
		return nil, err
	}
	tombstones, err := tombstones.NewKeeper(set, root)
	if err != nil {
		return nil, err
	}
	return &Store{
		set: set, chunks: chunks, manifests: manifests,
		finder: newest.NewFinder(set, manifests), keeper: keeper, lost: lost, tombstones: tombstones,
		buffers: newBuffers(options.Workers+1, chunk.Size),
		small:   newBuffers(max(options.Workers, set.Concurrency()), SmallObject+1),
		options: options,
		removed: map[[blob.IDSize]byte]bool{},
		said:    map[string]bool{},
	}, nil
}

// warnOnce warns of something that several calls may meet.
func (s *Store) warnOnce(line string) {
	s.mu.Lock()
	said := s.said[line]
	s.said[line] = true
	s.mu.Unlock()
	if !said {
		s.options.Warn(line)
	}
}

// ValidName returns nil when an object may have the name: 1 to MaxName bytes
// of UTF-8 without control characters and without "." or ".." or nothing
// between slashes, so that a name can become a path below a directory.
func ValidName(name string) error {
	switch {
	case name == "":
		return errors.New("an object's name can't be empty")
	case len(name) > MaxName:
		return fmt.Errorf("the object's name has %d bytes, more than %d", len(name), MaxName)
	case !utf8.ValidString(name):
		return fmt.Errorf("the object's name %q isn't valid UTF-8", name)
	case strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("the object's name %q has control characters", name)
	}
	for element := range strings.SplitSeq(name, "/") {
		switch element {
		case "", ".", "..":
			return fmt.Errorf("the object's name %q has an element %q between slashes", name, element)
		}
	}
	return nil
}

// object describes the object of a manifest.
func object(m *manifest.Manifest) Object {
	o := Object{
		Name:     m.Name,
		Size:     m.Size,
		Chunks:   len(m.Chunks),
		Modified: time.Unix(0, m.Version.Time),
		FileMode: fs.FileMode(m.FileMode),
	}
	if m.FileTime != 0 {
		o.FileTime = time.Unix(0, m.FileTime)
	}
	return o
}

// find returns what the locations hold of the named object.
func (s *Store) find(ctx context.Context, name string) newest.Result {
	return s.finder.Find(ctx, s.manifests.BlobName(name))
}

// newest returns the newest version of an object, which may be a tombstone, or
// an error that names the object.
func (s *Store) newest(ctx context.Context, name string) (newest.Result, error) {
	result := s.find(ctx, name)
	if err := ctx.Err(); err != nil {
		return newest.Result{}, err
	}
	err := result.Err()
	if err == nil {
		return result, nil
	}
	if !errors.Is(err, ErrNotFound) {
		err = fmt.Errorf("%w; run 'pcctl check'", err)
	}
	return newest.Result{}, fmt.Errorf("%s: %w", name, err)
}

// recorded returns an object's mark in the nodes' record. To be compared with what
// the locations have it must be read before that.
func (s *Store) recorded(ctx context.Context, name string) (mark rollback.Mark, known bool, err error) {
	id := s.manifests.BlobName(name).ID
	marks, err := s.options.Guard.Get(ctx, id)
	mark, known = marks[id]
	return mark, known, err
}

// live returns the newest version of an object that exists, and an error when it is
// older than the nodes' record of it.
func (s *Store) live(ctx context.Context, name string) (newest.Result, error) {
	mark, recorded, err := s.recorded(ctx, name)
	if err != nil {
		return newest.Result{}, err
	}
	result, err := s.newest(ctx, name)
	if recorded && (err == nil || errors.Is(err, ErrNotFound)) {
		if err := rollback.Compare(name, mark, result.Manifest); err != nil {
			return newest.Result{}, err
		}
	}
	if err != nil {
		return newest.Result{}, err
	}
	s.noteRead(result)
	if !result.Live() {
		return newest.Result{}, fmt.Errorf("%s: %w", name, ErrNotFound)
	}
	// A large object's takes memory for as long as the object is read.
	result.Blob = nil
	return result, nil
}

// noteRead warns, once, when so few locations could be read that a newer version
// than the one found may exist, and notes which locations have corrupt copies.
func (s *Store) noteRead(result newest.Result) {
	if doubt := s.set.Doubt(result.Unread()); doubt != "" {
		s.doubted.Do(func() { s.options.Warn(doubt) })
	}
	for i, c := range result.Copies {
		if c.State == newest.Corrupt {
			s.set.NoteCorrupt(i)
		}
	}
}

// silent is the Progress of those who don't want to know.
type silent struct{}

func (silent) Expect(int64) {}
func (silent) Done(int64)   {}
