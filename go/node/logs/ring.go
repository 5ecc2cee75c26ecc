package logs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	// maxSegments bounds the number of segments: many short boots must not make many
	// files.
	maxSegments = 64
	// unfinished ends the names of files that aren't segments yet.
	unfinished = ".new"
)

// ring is a bounded number of segments in a folder. One goroutine appends to it;
// any number may read at once.
type ring struct {
	folder string
	// boot is the identifier of the boot that appends.
	boot string
	// bound is how many bytes all segments have together at most, and segmentSize how
	// many one has.
	bound, segmentSize int64
	// step is called after each step that lasts. Tests cut the power there.
	step func(name string) error

	// file is the segment that is appended to, nil before the first; it is the last of
	// segments. fresh tells that its name may not be on the disk yet.
	file  *os.File
	fresh bool

	// sequence is the last of the kernel's records in the ring, as in entry.
	sequence uint64

	mu       sync.Mutex
	segments []segment
	// next is where the next segment begins if there is none.
	next int64
	// appended is closed, and replaced, when there is more to read. It stays closed once
	// another ring has taken this one's place.
	appended chan struct{}
}

// openRing opens the ring in a folder, which it makes. Of a last line that a power cut
// has torn, what is there is cut off.
func openRing(folder, boot string, bound int64, step func(string) error) (*ring, error) {
	r := &ring{folder: folder, boot: boot, bound: bound, segmentSize: bound / 16, step: step, appended: make(chan struct{})}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("open the node's log: %w", err)
	}
	var err error
	if r.segments, err = list(folder); err != nil {
		return nil, fmt.Errorf("open the node's log: %w", err)
	}
	if err := r.resume(); err != nil {
		return nil, fmt.Errorf("open the node's log: %w", err)
	}
	return r, nil
}

// resume finds where to go on. Only the last segment can have been torn, since one is
// synced before the next is made. If it can't be read or cut, the next one is made.
func (r *ring) resume() error {
	if len(r.segments) == 0 {
		return nil
	}
	last := &r.segments[len(r.segments)-1]
	r.next = last.end()
	if last.Kind == "" {
		return nil
	}
	content, err := readAt(r.folder, last.start, 0, last.size)
	if err != nil {
		return nil
	}
	size, sequence := wholeLines(content)
	if last.Kind == kindBoot && last.Boot == r.boot {
		r.sequence = max(last.Sequence, sequence)
	}
	file, err := os.OpenFile(filepath.Join(r.folder, segmentName(last.start)), os.O_WRONLY, 0)
	if err != nil {
		return nil
	}
	if size < last.size && file.Truncate(size) != nil {
		return file.Close()
	}
	last.size, r.next = size, last.start+size
	if last.Kind != kindBoot || last.Boot != r.boot {
		return file.Close()
	}
	r.file, r.fresh = file, true
	return nil
}

// append writes lines of this boot, makes them visible to readers, and returns how many
// it has written. The error wraps unix.ENOSPC or unix.EDQUOT if the disk is full and
// nothing can be given up any more.
func (r *ring) append(lines []line) (int, error) {
	done := 0
	for done < len(lines) {
		part, count := r.fitting(lines[done:])
		if count == 0 {
			if err := r.rotate(); err != nil {
				return done, err
			}
			continue
		}
		if err := r.write(part); err != nil {
			return done, err
		}
		// The next segment's heading has it.
		for _, l := range lines[done : done+count] {
			r.sequence = max(r.sequence, l.sequence)
		}
		done += count
	}
	return done, nil
}

// fitting returns how many lines can be appended to the last segment, and their bytes.
func (r *ring) fitting(lines []line) (part []byte, count int) {
	if r.file == nil {
		return nil, 0
	}
	room := r.segmentSize - r.segments[len(r.segments)-1].size
	for _, l := range lines {
		if int64(len(part)+len(l.bytes)) > room {
			break
		}
		part = append(part, l.bytes...)
		count++
	}
	return part, count
}

// write appends bytes to the last segment, or nothing.
func (r *ring) write(b []byte) error {
	at := r.segments[len(r.segments)-1].size
	err := r.freeing(func() error {
		_, err := r.file.WriteAt(b, at)
		if err != nil {
			err = errors.Join(err, r.file.Truncate(at))
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("write the node's log: %w", err)
	}
	r.mu.Lock()
	r.segments[len(r.segments)-1].size += int64(len(b))
	r.next += int64(len(b))
	close(r.appended)
	r.appended = make(chan struct{})
	r.mu.Unlock()
	return r.step("written")
}

// retire has readers that wait look for another ring, now and later.
func (r *ring) retire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.appended)
}

// full tells whether an error says that there is no space.
func full(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// rotate makes the next segment of this boot, and room for all of it before. What was
// written before is synced first, so that only the last segment can be torn.
func (r *ring) rotate() error {
	if err := r.leave(); err != nil {
		return err
	}
	if err := r.makeRoom(kindBoot); err != nil {
		return err
	}
	h := heading{Version: version, Kind: kindBoot, Boot: r.boot, First: r.next, Sequence: r.sequence}
	if at := slices.IndexFunc(r.segments, func(s segment) bool { return s.Kind == kindBoot && s.Boot == r.boot }); at >= 0 {
		h.First = r.segments[at].First
	}
	line, err := encodeLine(h)
	if err != nil {
		return err
	}
	err = r.freeing(func() error {
		var err error
		r.file, err = create(filepath.Join(r.folder, segmentName(r.next)), line)
		return err
	})
	if err != nil {
		return fmt.Errorf("begin a part of the node's log: %w", err)
	}
	r.fresh = true
	r.add(segment{heading: h, start: r.next, size: int64(len(line))})
	return r.step("created")
}

// save makes a segment of a panic or crash, whole or not at all. Lines that don't fit are
// left out at the beginning: the end is what matters.
func (r *ring) save(k kind, dump string, lines []byte) error {
	if err := r.leave(); err != nil {
		return err
	}
	if err := r.makeRoom(k); err != nil {
		return err
	}
	h := heading{Version: version, Kind: k, Boot: r.boot, First: r.next, Dump: dump}
	content, err := encodeLine(h)
	if err != nil {
		return err
	}
	if extra := len(content) + len(lines) - int(r.segmentSize); extra > 0 {
		lines = lines[extra:]
		lines = lines[bytes.IndexByte(lines, '\n')+1:]
	}
	content = append(content, lines...)
	path := filepath.Join(r.folder, segmentName(r.next))
	err = r.freeing(func() error {
		file, err := create(path+unfinished, content)
		if err != nil {
			return err
		}
		return errors.Join(file.Sync(), file.Close())
	})
	if err == nil {
		err = r.step("saved")
	}
	if err == nil {
		err = os.Rename(path+unfinished, path)
	}
	if err == nil {
		err = syncFolder(r.folder)
	}
	if err != nil {
		return fmt.Errorf("keep a %s in the node's log: %w", k, err)
	}
	r.add(segment{heading: h, start: r.next, size: int64(len(content))})
	return r.step("renamed")
}

// create makes a file with that content, or none, and leaves it open.
func create(path string, content []byte) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	if _, err := file.Write(content); err != nil {
		return nil, errors.Join(err, file.Close(), os.Remove(path))
	}
	return file, nil
}

// freeing does something again and again, while the disk is full and there is an old
// segment that can make room.
func (r *ring) freeing(do func() error) error {
	for {
		err := do()
		spare := len(r.segments)
		if r.file != nil {
			spare--
		}
		if err == nil || !full(err) || spare == 0 {
			return err
		}
		if err := r.remove(0); err != nil {
			return err
		}
	}
}

// add makes a segment visible to readers.
func (r *ring) add(s segment) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.segments = append(r.segments, s)
	r.next = s.end()
}

// leave syncs and closes the last segment.
func (r *ring) leave() error {
	if r.file == nil {
		return nil
	}
	err := errors.Join(r.sync(), r.file.Close())
	r.file = nil
	return err
}

// makeRoom removes what is too much once another segment is full: of this kind and
// boot at most half of the bound, and of everything the oldest.
func (r *ring) makeRoom(k kind) error {
	for {
		var total, own int64
		oldest := -1
		for i, s := range r.segments {
			total += s.size
			if s.Kind == k && s.Boot == r.boot {
				own += s.size
				if oldest < 0 {
					oldest = i
				}
			}
		}
		switch {
		case oldest >= 0 && own+r.segmentSize > r.bound/2:
		case total+r.segmentSize > r.bound, len(r.segments) >= maxSegments:
			oldest = 0
		default:
			return nil
		}
		if err := r.remove(oldest); err != nil {
			return err
		}
	}
}

// remove gives up a segment, which isn't the one that is appended to.
func (r *ring) remove(i int) error {
	name := segmentName(r.segments[i].start)
	if err := os.Remove(filepath.Join(r.folder, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("give up the oldest part of the node's log: %w", err)
	}
	r.mu.Lock()
	// Readers may hold what the slice was before.
	r.segments = slices.Concat(r.segments[:i], r.segments[i+1:])
	r.mu.Unlock()
	return r.step("removed")
}

// sync makes everything outlast a power cut.
func (r *ring) sync() error {
	if r.file == nil {
		return nil
	}
	err := r.file.Sync()
	if err == nil && r.fresh {
		err = syncFolder(r.folder)
	}
	if err != nil {
		return fmt.Errorf("sync the node's log: %w", err)
	}
	r.fresh = false
	return r.step("synced")
}

func syncFolder(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// close closes the ring, synced.
func (r *ring) close() error { return r.leave() }
