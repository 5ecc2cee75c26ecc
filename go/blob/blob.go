// Package blob names the sealed pieces that a cluster's data is stored as, and
// says what a storage location must do with them.
//
// A location is a place that nobody has to trust: a directory, a bucket, a
// node's disk. This package and those below it see names and ciphertext only.
// They never see a key, an object's name or its content, and they don't believe
// what a location answers any further than its size: whoever reads a blob
// authenticates it.
package blob

import (
	"context"
	"errors"
)

// ErrNotFound says that the location answered and holds no blob of that name.
var ErrNotFound = errors.New("blob not found")

// ErrTooLarge says that a blob is larger than its reader accepts, which no
// honest writer's blob is. Nothing beyond the reader's limit was kept in memory.
var ErrTooLarge = errors.New("blob is larger than it may be")

// ErrDamaged says that the location answered, and that what it holds of a blob is
// not enough to put it together. It is as good as a corrupt copy.
var ErrDamaged = errors.New("too little is left of the blob")

// Unusable reports whether an error says that the location answered with
// something that is no honest writer's blob, or not enough of one.
func Unusable(err error) bool {
	return errors.Is(err, ErrTooLarge) || errors.Is(err, ErrDamaged)
}

// Answered reports whether an error of a Location's Get, Stat or Delete is an answer:
// none, that there is no such blob, or that what there is can't be used. Any other
// says nothing about what the location holds.
func Answered(err error) bool {
	return err == nil || errors.Is(err, ErrNotFound) || Unusable(err)
}

// CheckCall returns why a Location can't be asked for a blob: the context has ended,
// or it is not a blob's name.
func CheckCall(ctx context.Context, name Name) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return name.Check()
}

// SizeUnknown stands for the size of a blob that the location can't tell without
// reading it.
const SizeUnknown = -1

// Info is what a location tells about a blob without reading it.
type Info struct {
	Name Name
	// Size is the blob's length in bytes. In a listing it may be SizeUnknown for
	// any blob but a chunk, and for a chunk of which the location has too little.
	Size int64
	// Mark is the location's own version mark, opaque and at most a few dozen
	// bytes. It differs whenever the blob was written again with other content;
	// a location may tell the same content by the same mark. It is the
	// location's word: good for noticing a change, never for believing content.
	Mark string
}

// Location is a place that holds blobs. Its methods may be called from several
// goroutines at once.
//
// Errors other than ErrNotFound, ErrTooLarge and ErrDamaged mean that the answer
// could not be determined, which is never the same as absent. Errors say what failed and
// why but don't name the location; whoever asked several of them does.
type Location interface {
	// String returns the location as it was given in --repo. It holds no secrets.
	String() string
	// Probe returns nil when the location answers, even if it is empty or not
	// yet created.
	Probe(ctx context.Context) error
	// Put stores data under name and replaces what was there, as one step: a
	// reader sees the earlier blob or the new one, whole. When Put fails or the
	// process dies, the earlier blob is intact. Once Put has returned nil, Get
	// returns the new blob, and its data is synced; that the name outlasts a
	// power cut is certain once a later Flush has returned nil. Put doesn't
	// keep data.
	Put(ctx context.Context, name Name, data []byte) error
	// Get reads the blob into buf's memory, from its start, when the capacity
	// is enough, otherwise into new memory. It returns ErrNotFound, ErrTooLarge
	// for a blob of more than limit bytes, or ErrDamaged.
	Get(ctx context.Context, name Name, buf []byte, limit int64) ([]byte, error)
	// Stat returns the blob's size and mark, ErrNotFound or ErrDamaged.
	Stat(ctx context.Context, name Name) (Info, error)
	// Delete removes the blob. Deleting what is absent is not an error. Like
	// Put, it outlasts a power cut once a later Flush has returned nil.
	Delete(ctx context.Context, name Name) error
	// List calls fn for every blob of that kind, with bounded memory, however
	// many there are. They are ordered by the first byte of their IDs and by
	// nothing else, so that several locations can be compared a 256th at a
	// time. What isn't a blob is passed over. An error from fn ends the listing
	// and is returned as it is. A blob that is written or deleted meanwhile may
	// be listed or not.
	List(ctx context.Context, kind Kind, fn func(Info) error) error
	// Flush returns nil once everything that Put and Delete had done before the
	// call survives a power cut, and so does every blob that Stat had found,
	// whoever wrote it: a writer may rely on such a blob instead of writing it
	// again. Calls at the same time share their work. A Flush never returns nil
	// while what an earlier one failed to sync may be lost.
	Flush(ctx context.Context) error
}

// Temporary describes what an interrupted write left at a location.
type Temporary struct {
	// Name is the location's own name for it, for RemoveTemporary.
	Name string
	// Size is its length in bytes.
	Size int64
	// Mark differs whenever the file was written to, like Info's.
	Mark string
}

// Temporaries is what a Location also implements when a write that was
// interrupted can leave something behind there. A write in progress has its
// temporary listed too: whoever removes them first makes sure that they are
// old, by a clock of its own.
type Temporaries interface {
	// ListTemporary calls fn for every leftover. An error from fn ends the
	// listing and is returned as it is.
	ListTemporary(ctx context.Context, fn func(Temporary) error) error
	// RemoveTemporary removes one. Removing what is absent is not an error.
	RemoveTemporary(ctx context.Context, name string) error
}

// Sections is what a Location also implements when it can tell without a listing
// that nothing has changed in a section: among the blobs of a kind whose IDs begin
// with the same byte.
type Sections interface {
	// SectionMark returns a mark of the section as it is now. A Put or Delete in
	// the section makes it another, if it changes anything. Like the mark of a blob
	// it is the location's word. "" means that the location can't tell now.
	SectionMark(ctx context.Context, kind Kind, first byte) (string, error)
	// ListSection is List for a section.
	ListSection(ctx context.Context, kind Kind, first byte, fn func(Info) error) error
}

// Concurrent is what a Location also implements when calls of it are spent waiting,
// so that many of them are worth having under way at once. A directory is served
// best by as many as there are processors, a bucket on another continent by dozens.
type Concurrent interface {
	// Concurrency returns how many calls of Put, Get, Stat and Delete can be worth
	// having under way at once: 1 to 64. How many are at present, the location
	// finds out from how it answers; the others wait inside their call, which
	// holds their data in memory.
	Concurrency() int
}
