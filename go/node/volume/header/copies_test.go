package header

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
)

// memory is a partition in memory, whose power is cut after so many writes, the
// last of which it cuts off after torn bytes. A negative number never ends.
type memory struct {
	content []byte
	writes  int
	torn    int
}

var errCut = errors.New("the power is cut")

func (m *memory) ReadAt(b []byte, offset int64) (int, error) {
	return bytes.NewReader(m.content).ReadAt(b, offset)
}

func (m *memory) WriteAt(b []byte, offset int64) (int, error) {
	if m.writes == 0 {
		return copy(m.content[offset:], b[:min(len(b), m.torn)]), errCut
	}
	m.writes--
	return copy(m.content[offset:], b), nil
}

func (m *memory) Sync() error {
	if m.writes == 0 {
		return errCut
	}
	return nil
}

func blank() *memory { return &memory{content: make([]byte, 2*Area), writes: -1} }

// cuts runs an operation on copies of a partition, cut at every write and at several
// places in it, and looks at what each left.
func cuts(t *testing.T, start *memory, operation func(Disk) error, look func(where string, left *memory)) {
	t.Helper()
	for n := 0; ; n++ {
		finished := true
		for _, torn := range []int{0, 512, 1024, 4096, 1 << 15} {
			m := &memory{bytes.Clone(start.content), n, torn}
			if err := operation(m); errors.Is(err, errCut) {
				finished = false
			} else if err != nil {
				t.Fatal(err)
			}
			m.writes = -1
			look(fmt.Sprintf("cut in write %d after %d bytes", n, torn), m)
		}
		if finished {
			if n < 2 {
				t.Errorf("it made %d writes", n)
			}
			return
		}
	}
}

func TestFirstWrite(t *testing.T) {
	h, key, admin := newHeader(t)
	cuts(t, blank(), h.Write, func(where string, left *memory) {
		copies, err := Read(left)
		if errors.Is(err, ErrNone) {
			if empty, err := Blank(left); err != nil || !empty {
				t.Errorf("%s: it has no header and isn't blank, %v", where, err)
			}
			return
		}
		if err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		if _, opened, err := copies.Unlock(admin); err != nil || *opened != *key {
			t.Errorf("%s: %v", where, err)
		}
	})
}

// TestReplace replaces a header by longer and shorter ones, where none, the primary or
// the backup is damaged before.
func TestReplace(t *testing.T) {
	h, key, admin := newHeader(t)
	long := grown(t, h, key)
	short, err := long.With(key, "home-1", h.Slots)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range [][2]*Header{{h, long}, {long, short}} {
		for _, damage := range []int{-1, primaryOffset + 300, backupOffset + 300} {
			start := blank()
			if err := step[0].Write(start); err != nil {
				t.Fatal(err)
			}
			if damage >= 0 {
				start.content[damage] ^= 0xff
				start.content[damage-200] ^= 0xff
			}
			cuts(t, start, func(d Disk) error { return step[0].Replace(d, step[1]) }, func(where string, left *memory) {
				copies, err := Read(left)
				if err != nil {
					t.Fatalf("%s: %v", where, err)
				}
				found, _, err := copies.Unlock(admin)
				if err != nil || found.Serial != step[0].Serial && found.Serial != step[1].Serial {
					t.Fatalf("%s: %+v, %v", where, found, err)
				}
				// The next start repairs it.
				if err := found.Write(left); err != nil {
					t.Fatal(err)
				}
				if copies, err := Read(left); err != nil || len(copies) != 2 || copies[0].Serial != copies[1].Serial {
					t.Errorf("%s: after a repair: %d copies, %v", where, len(copies), err)
				}
			})
		}
	}
	m := blank()
	for _, err := range []error{long.Write(m), long.Replace(m, short)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if bytes.Contains(m.content, []byte("peers")) {
		t.Error("a slot that was removed is still on the disk")
	}
}

func TestDamaged(t *testing.T) {
	h, key, admin := newHeader(t)
	next := grown(t, h, key)
	m := blank()
	if err := h.Write(m); err != nil {
		t.Fatal(err)
	}
	// A backup that is newer and forged doesn't hide the authentic primary.
	forged := *next
	forged.mac[0] ^= 1
	copy(m.content[backupOffset:], forged.Marshal())
	copies, err := Read(m)
	if err != nil || len(copies) != 2 || copies[0].Serial != 2 {
		t.Fatalf("%d copies, %v", len(copies), err)
	}
	if found, _, err := copies.Unlock(admin); err != nil || found.Serial != 1 {
		t.Errorf("%+v, %v", found, err)
	}
	if len(copies.Owners()) != 1 {
		t.Errorf("the owners are %v", copies.Owners())
	}
	forged.Owner.Node[0] ^= 1
	copy(m.content[backupOffset:], forged.Marshal())
	if copies, err = Read(m); err != nil || len(copies.Owners()) != 2 {
		t.Errorf("the owners are %v, %v", copies.Owners(), err)
	}
	wrong := Key{1}
	if _, _, err := copies.Unlock(&wrong); err != ErrWrongKey {
		t.Errorf("a wrong key: %v", err)
	}
	m.content[backupOffset+20] ^= 1
	if copies, err = Read(m); err != nil || len(copies) != 1 {
		t.Fatalf("%d copies, %v", len(copies), err)
	}
	if _, _, err := copies.Unlock(&wrong); err != ErrWrongKey {
		t.Errorf("a wrong key with one copy: %v", err)
	}
	m.content[20] ^= 1
	if _, err := Read(m); !errors.Is(err, ErrHeader) || errors.Is(err, ErrNone) {
		t.Errorf("both copies damaged: %v", err)
	}
	clear(m.content[:8])
	if _, err := Read(m); !errors.Is(err, ErrHeader) || errors.Is(err, ErrNone) {
		t.Errorf("one copy gone and one damaged: %v", err)
	}
	clear(m.content)
	m.content[Area-1] = 1
	if _, err := Read(m); !errors.Is(err, ErrNone) {
		t.Errorf("something else: %v", err)
	}
	if empty, err := Blank(m); err != nil || empty {
		t.Errorf("something else is blank, %v", err)
	}
	if _, err := Read(&memory{}); !errors.Is(err, ErrHeader) && err == nil {
		t.Errorf("a partition that can't be read: %v", err)
	}
}

func TestErase(t *testing.T) {
	h, key, _ := newHeader(t)
	m := blank()
	m.content[Area] = 1
	if err := grown(t, h, key).Write(m); err != nil {
		t.Fatal(err)
	}
	cuts(t, m, Erase, func(where string, left *memory) {
		_, err := Read(left)
		if errors.Is(err, ErrErasing) {
			err = Erase(left)
			if err == nil {
				_, err = Read(left)
			}
		}
		if err == nil {
			return // It is as it was.
		}
		if empty, blankErr := Blank(left); !errors.Is(err, ErrNone) || blankErr != nil || !empty {
			t.Errorf("%s: %v, blank: %v, %v", where, err, empty, blankErr)
		}
		if left.content[Area] != 1 {
			t.Errorf("%s: more was erased", where)
		}
	})
}
