package blobtest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"

	"powercloud.unidatum.com/go/blob"
)

// Memory is a location in memory.
type Memory struct {
	name string

	mu      sync.Mutex
	blobs   map[blob.Name]entry
	version int
	// changed has the version at which each section was last changed.
	changed map[section]int
}

// section is the blobs of a kind whose IDs begin with a byte.
type section struct {
	kind  blob.Kind
	first byte
}

func sectionOf(name blob.Name) section { return section{name.Kind, name.ID[0]} }

var _ blob.Sections = (*Memory)(nil)

type entry struct {
	data []byte
	mark string
}

// NewMemory returns an empty location whose String is name.
func NewMemory(name string) *Memory {
	return &Memory{name: name, blobs: map[blob.Name]entry{}, changed: map[section]int{}}
}

// String returns the name given to NewMemory.
func (m *Memory) String() string { return m.name }

// Probe returns nil unless ctx is done.
func (m *Memory) Probe(ctx context.Context) error { return ctx.Err() }

// Flush returns nil unless ctx is done.
func (m *Memory) Flush(ctx context.Context) error { return ctx.Err() }

// Put stores a copy of data.
func (m *Memory) Put(ctx context.Context, name blob.Name, data []byte) error {
	return m.put(ctx, name, data, true)
}

// Create stores a copy of data where there is no blob.
func (m *Memory) Create(ctx context.Context, name blob.Name, data []byte) error {
	return m.put(ctx, name, data, false)
}

func (m *Memory) put(ctx context.Context, name blob.Name, data []byte, replace bool) error {
	if err := blob.CheckCall(ctx, name); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, exists := m.blobs[name]; exists && !replace {
		return blob.ErrExists
	}
	m.store(name, data)
	return nil
}

// store stores a copy of data. m.mu is held.
func (m *Memory) store(name blob.Name, data []byte) {
	m.version++
	m.changed[sectionOf(name)] = m.version
	m.blobs[name] = entry{bytes.Clone(data), strconv.Itoa(m.version)}
}

// Amend changes a blob; see blob.Amender.
func (m *Memory) Amend(ctx context.Context, name blob.Name, limit int64, change blob.Change) error {
	for range blob.AmendTries {
		former, err := m.find(ctx, name)
		if err != nil && !errors.Is(err, blob.ErrNotFound) {
			return err
		}
		data := bytes.Clone(former.data)
		if int64(len(data)) > limit {
			data, err = nil, blob.ErrTooLarge
		}
		next, err := change(data, err)
		if err != nil || next == nil {
			return err
		}
		if m.replace(name, former.mark, next) {
			return nil
		}
	}
	return blob.ErrContended
}

// replace stores a blob if what is there has the mark, "" being that of nothing.
func (m *Memory) replace(name blob.Name, mark string, data []byte) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.blobs[name].mark != mark {
		return false
	}
	m.store(name, data)
	return true
}

// Get copies the blob.
func (m *Memory) Get(ctx context.Context, name blob.Name, buf []byte, limit int64) ([]byte, error) {
	found, err := m.find(ctx, name)
	switch {
	case err != nil:
		return nil, err
	case int64(len(found.data)) > limit:
		return nil, blob.ErrTooLarge
	}
	return append(buf[:0], found.data...), nil
}

// Stat describes the blob.
func (m *Memory) Stat(ctx context.Context, name blob.Name) (blob.Info, error) {
	found, err := m.find(ctx, name)
	if err != nil {
		return blob.Info{}, err
	}
	return blob.Info{Name: name, Size: int64(len(found.data)), Mark: found.mark}, nil
}

func (m *Memory) find(ctx context.Context, name blob.Name) (entry, error) {
	if err := blob.CheckCall(ctx, name); err != nil {
		return entry{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	found, ok := m.blobs[name]
	if !ok {
		return entry{}, blob.ErrNotFound
	}
	return found, nil
}

// Delete removes the blob.
func (m *Memory) Delete(ctx context.Context, name blob.Name) error {
	if err := blob.CheckCall(ctx, name); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, exists := m.blobs[name]; exists {
		m.version++
		m.changed[sectionOf(name)] = m.version
		delete(m.blobs, name)
	}
	return nil
}

// List lists what there is when it is called.
func (m *Memory) List(ctx context.Context, kind blob.Kind, fn func(blob.Info) error) error {
	return m.list(ctx, kind, func(blob.Name) bool { return true }, fn)
}

// ListSection lists what there is in a section when it is called.
func (m *Memory) ListSection(ctx context.Context, kind blob.Kind, first byte, fn func(blob.Info) error) error {
	return m.list(ctx, kind, func(name blob.Name) bool { return name.ID[0] == first }, fn)
}

func (m *Memory) list(ctx context.Context, kind blob.Kind, wanted func(blob.Name) bool, fn func(blob.Info) error) error {
	if err := blob.CheckCall(ctx, blob.Name{Kind: kind}); err != nil {
		return err
	}
	m.mu.Lock()
	var infos []blob.Info
	for name, found := range m.blobs {
		if name.Kind == kind && wanted(name) {
			infos = append(infos, blob.Info{Name: name, Size: int64(len(found.data)), Mark: found.mark})
		}
	}
	m.mu.Unlock()
	slices.SortFunc(infos, func(a, b blob.Info) int { return cmp.Compare(a.Name.ID[0], b.Name.ID[0]) })
	for _, info := range infos {
		if err := fn(info); err != nil {
			return err
		}
	}
	return nil
}

// SectionMark says when the section was last changed.
func (m *Memory) SectionMark(ctx context.Context, kind blob.Kind, first byte) (string, error) {
	if err := blob.CheckCall(ctx, blob.Name{Kind: kind}); err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return strconv.Itoa(m.changed[section{kind, first}]), nil
}

// Snapshot returns a function that brings the location back to what it holds now,
// marks included. The marks of what is written later are new all the same.
func (m *Memory) Snapshot() (restore func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	saved, changed := maps.Clone(m.blobs), maps.Clone(m.changed)
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.blobs, m.changed = maps.Clone(saved), maps.Clone(changed)
	}
}

// Alter replaces every blob by what change makes of it, under the mark it had, as
// when bits rot. change owns the bytes.
func (m *Memory) Alter(change func(name blob.Name, data []byte) []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, stored := range m.blobs {
		m.blobs[name] = entry{change(name, bytes.Clone(stored.data)), stored.mark}
	}
}
