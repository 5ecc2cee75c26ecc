package keys

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"testing"
)

func TestCreateAndUnlock(t *testing.T) {
	h, root, recovery := mustCreate(t, rand.Reader, testPassphrase)
	b := h.Marshal()
	if len(b) > MaxHeader {
		t.Fatalf("%d bytes", len(b))
	}
	h, err := ParseHeader(b)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(h.Marshal(), b) {
		t.Fatal("the header doesn't come back as it was")
	}
	if h.Serial != 1 || len(h.Slots) != 2 || h.Slots[0].Kind != SlotPassphrase || h.Slots[1].Kind != SlotRecovery {
		t.Fatalf("serial %d, slots %v", h.Serial, h.Slots)
	}
	got, err := h.UnlockPassphrase([]byte(testPassphrase))
	wantRoot(t, got, err, root)
	got, err = h.UnlockRecovery(recovery)
	wantRoot(t, got, err, root)
	if err := h.Verify(root); err != nil {
		t.Fatal(err)
	}

	_, other, otherRecovery := mustCreate(t, rand.Reader, testPassphrase)
	if other.key == root.key || otherRecovery == recovery {
		t.Fatal("two clusters have the same keys")
	}
	if err := h.Verify(other); !errors.Is(err, ErrHeader) {
		t.Fatalf("another cluster's root verifies the header: %v", err)
	}
	for _, wrong := range []string{"", testPassphrase + " ", testPassphrase[1:], "CORRECT HORSE BATTERY STAPLE", recovery.String()} {
		got, err := h.UnlockPassphrase([]byte(wrong))
		if got != nil || err != ErrWrongKey {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	if got, err := h.UnlockRecovery(otherRecovery); got != nil || err != ErrWrongKey {
		t.Errorf("another recovery key: %v", err)
	}
	if ErrWrongKey.Error() != "keys: wrong passphrase or recovery key" {
		t.Errorf("the error reads %q", ErrWrongKey)
	}
}

func TestCreateShortRandom(t *testing.T) {
	counted := &countedReader{r: rand.Reader}
	mustCreate(t, counted, testPassphrase)
	for n := range counted.n {
		_, root, recovery, err := create(io.LimitReader(rand.Reader, int64(n)), []byte(testPassphrase), cheap())
		if err == nil || root != nil || recovery != (RecoveryKey{}) {
			t.Fatalf("made a cluster from %d of %d random bytes", n, counted.n)
		}
	}
}

type countedReader struct {
	r io.Reader
	n int
}

func (c *countedReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}

func TestHeaderCut(t *testing.T) {
	h, _, _ := mustCreate(t, rand.Reader, testPassphrase)
	b := h.Marshal()
	for n := range b {
		for what, cut := range map[string][]byte{
			"front":        b[:n],
			"back":         b[len(b)-n:],
			"front, sum":   resum(b[:n]),
			"middle, sum":  resum(slices.Concat(b[:n], b[min(n+slotSize, len(b)):])),
			"grown, sum":   resum(append(bytes.Clone(b), make([]byte, n+1)...)),
			"grown, old":   append(bytes.Clone(b), make([]byte, n+1)...),
			"twice":        append(bytes.Clone(b), b[:n+1]...),
			"twice, sum":   resum(append(bytes.Clone(b), b[:n+1]...)),
			"zeroes after": append(bytes.Clone(b[:n]), make([]byte, len(b)-n)...),
		} {
			if what == "zeroes after" && bytes.Equal(cut, b) {
				continue
			}
			if _, err := ParseHeader(cut); !errors.Is(err, ErrHeader) {
				t.Fatalf("%s at %d: %v", what, n, err)
			}
		}
	}
	for _, n := range []int{MaxHeader, MaxHeader + 1, 1 << 20} {
		big := resum(append(bytes.Clone(b), make([]byte, n-len(b))...))
		if _, err := ParseHeader(big); !errors.Is(err, ErrHeader) {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
}

// Every byte altered, by accident and on purpose: never a root.
func TestHeaderAltered(t *testing.T) {
	h, _, recovery := mustCreate(t, rand.Reader, testPassphrase)
	b := h.Marshal()
	for i := range b {
		for _, mask := range []byte{0x01, 0x80, 0xff} {
			what := fmt.Sprintf("byte %d xor %#x", i, mask)
			bad := bytes.Clone(b)
			bad[i] ^= mask
			if _, err := ParseHeader(bad); !errors.Is(err, ErrHeader) {
				t.Fatalf("%s: %v", what, err)
			}
			if i >= len(b)-macSize {
				continue // the checksum itself: setting it right undoes the change
			}
			altered, err := ParseHeader(resum(bad))
			if err != nil {
				if !errors.Is(err, ErrHeader) {
					t.Fatalf("%s: %v", what, err)
				}
				continue
			}
			root, err := altered.UnlockPassphrase([]byte(testPassphrase))
			wantRefused(t, what+", passphrase", root, err)
			root, err = altered.UnlockRecovery(recovery)
			wantRefused(t, what+", recovery key", root, err)
		}
	}
}

// A header may not ask for more than the stated limits, and asking is refused
// before anything is computed.
func TestHeaderLimits(t *testing.T) {
	h, root, _ := mustCreate(t, rand.Reader, testPassphrase)
	slot := func(change func(*Slot)) Slot {
		s := h.Slots[0]
		change(&s)
		return s
	}
	cost := func(a Argon2) []Slot {
		return []Slot{slot(func(s *Slot) { s.Argon2 = a }), h.Slots[1]}
	}
	many := func(n int, a Argon2) []Slot {
		slots := []Slot{h.Slots[1]}
		for i := range n {
			slots = append(slots, slot(func(s *Slot) { s.ID, s.Argon2 = uint8(i+10), a }))
		}
		return slots
	}
	for name, test := range map[string]struct {
		slots []Slot
		ok    bool
	}{
		"unchanged":          {h.Slots, true},
		"most memory":        {cost(Argon2{1 << 20, 16, 16}), true},
		"too much memory":    {cost(Argon2{1<<20 + 1, 1, 4}), false},
		"all the memory":     {cost(Argon2{math.MaxUint32, 1, 4}), false},
		"no memory":          {cost(Argon2{0, 1, 1}), false},
		"too little memory":  {cost(Argon2{31, 1, 4}), false},
		"no passes":          {cost(Argon2{64, 0, 4}), false},
		"too many passes":    {cost(Argon2{64, 17, 4}), false},
		"no lanes":           {cost(Argon2{64, 1, 0}), false},
		"too many lanes":     {cost(Argon2{1024, 1, 17}), false},
		"7 standard slots":   {many(7, standardArgon2()), true},
		"8 and recovery":     {many(8, cheap()), false},
		"two costly slots":   {many(2, Argon2{1 << 20, 9, 4}), false},
		"no slots":           {nil, false},
		"no recovery slot":   {h.Slots[:1], false},
		"no passphrase slot": {h.Slots[1:], false},
		"same ID":            {[]Slot{h.Slots[0], slot(func(s *Slot) {}), h.Slots[1]}, false},
		"ID 0":               {[]Slot{slot(func(s *Slot) { s.ID = 0 }), h.Slots[1]}, false},
		"kind 0":             {append(slices.Clone(h.Slots), slot(func(s *Slot) { s.ID, s.Kind = 9, 0 })), false},
		"kind 3":             {append(slices.Clone(h.Slots), slot(func(s *Slot) { s.ID, s.Kind = 9, 3 })), false},
		"stretched recovery": {append(slices.Clone(h.Slots), slot(func(s *Slot) { s.ID, s.Kind = 9, SlotRecovery })), false},
	} {
		t.Run(name, func(t *testing.T) {
			made := &Header{Cluster: h.Cluster, Serial: 1, Slots: test.slots}
			parsed, err := ParseHeader(made.Marshal())
			if test.ok != (err == nil) || (err != nil && !errors.Is(err, ErrHeader)) {
				t.Fatalf("ParseHeader: %v", err)
			}
			if test.ok && !slices.Equal(parsed.Slots, test.slots) {
				t.Fatal("the slots don't come back as they were")
			}
			if _, err := h.WithSlots(root, test.slots); test.ok != (err == nil) {
				t.Fatalf("WithSlots: %v", err)
			}
			if test.ok {
				return
			}
			if _, err := made.UnlockPassphrase([]byte(testPassphrase)); !errors.Is(err, ErrHeader) {
				t.Fatalf("UnlockPassphrase: %v", err)
			}
		})
	}
}

func TestHeaderVersion(t *testing.T) {
	h, _, _ := mustCreate(t, rand.Reader, testPassphrase)
	b := h.Marshal()
	for _, version := range []uint16{0, 2, math.MaxUint16} {
		binary.BigEndian.PutUint16(b[len(headerMagic):], version)
		_, err := ParseHeader(resum(b))
		want := fmt.Sprintf("keys: bad key header: its format version is %d and this program reads version 1; use the pcctl that wrote it", version)
		if !errors.Is(err, ErrHeader) || err.Error() != want {
			t.Errorf("version %d: %v", version, err)
		}
	}
	// A later version may be shorter than any of version 1.
	short := resum(append([]byte("PCheader\x00\x02"), make([]byte, 32)...))
	if _, err := ParseHeader(short); !errors.Is(err, ErrHeader) {
		t.Error(err)
	}
}

func TestWithSlots(t *testing.T) {
	h, root, recovery := mustCreate(t, rand.Reader, testPassphrase)
	const newPassphrase = "another twelve or more"
	changed, err := h.newPassphraseSlot(rand.Reader, root, 3, []byte(newPassphrase), cheap())
	if err != nil {
		t.Fatal(err)
	}
	spare, spareKey, err := h.NewRecoverySlot(rand.Reader, root, 4)
	if err != nil {
		t.Fatal(err)
	}
	slots := []Slot{changed, h.Slots[1], spare}
	next, err := h.WithSlots(root, slots)
	if err != nil {
		t.Fatal(err)
	}
	slots[0] = Slot{} // the header has its own copy
	if next, err = ParseHeader(next.Marshal()); err != nil {
		t.Fatal(err)
	}
	if next.Serial != 2 || next.Cluster != h.Cluster || h.Serial != 1 || len(h.Slots) != 2 {
		t.Fatalf("serial %d after %d", next.Serial, h.Serial)
	}
	got, err := next.UnlockPassphrase([]byte(newPassphrase))
	wantRoot(t, got, err, root)
	for _, k := range []RecoveryKey{recovery, spareKey} {
		got, err = next.UnlockRecovery(k)
		wantRoot(t, got, err, root)
	}
	if got, err := next.UnlockPassphrase([]byte(testPassphrase)); got != nil || err != ErrWrongKey {
		t.Fatalf("the old passphrase: %v", err)
	}

	both, err := h.WithSlots(root, append(slices.Clone(h.Slots), changed))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{testPassphrase, newPassphrase} {
		got, err = both.UnlockPassphrase([]byte(p))
		wantRoot(t, got, err, root)
	}
}

func TestWithSlotsRefuses(t *testing.T) {
	h, root, _ := mustCreate(t, rand.Reader, testPassphrase)
	_, other, _ := mustCreate(t, rand.Reader, testPassphrase)
	if _, err := h.WithSlots(other, h.Slots); !errors.Is(err, ErrHeader) {
		t.Errorf("made a header authentic under another root: %v", err)
	}
	altered := *h
	altered.Serial = 7
	if _, err := altered.WithSlots(root, h.Slots); !errors.Is(err, ErrHeader) {
		t.Errorf("made an altered header authentic: %v", err)
	}
	last := *h
	last.Serial = math.MaxUint64
	last.mac = last.computeMAC(root)
	if _, err := last.WithSlots(root, h.Slots); !errors.Is(err, ErrHeader) {
		t.Errorf("the serial went round: %v", err)
	}
	for _, p := range []string{"", "elevenchars"} {
		if _, err := h.NewPassphraseSlot(rand.Reader, root, 3, []byte(p)); err == nil {
			t.Errorf("made a slot for the passphrase %q", p)
		}
	}
	if _, err := h.newPassphraseSlot(rand.Reader, root, 0, []byte(testPassphrase), cheap()); err == nil {
		t.Error("made a slot with ID 0")
	}
	for n := range 20 + saltSize + nonceSize {
		if _, k, err := h.NewRecoverySlot(io.LimitReader(rand.Reader, int64(n)), root, 3); err == nil || k != (RecoveryKey{}) {
			t.Fatalf("made a recovery slot from %d random bytes", n)
		}
	}
}

// Parts of authentic headers put together in another way.
func TestHeaderMixed(t *testing.T) {
	h, root, recovery := mustCreate(t, rand.Reader, testPassphrase)
	slot, err := h.newPassphraseSlot(rand.Reader, root, 1, []byte("the new passphrase"), cheap())
	if err != nil {
		t.Fatal(err)
	}
	next, err := h.WithSlots(root, []Slot{slot, h.Slots[1]})
	if err != nil {
		t.Fatal(err)
	}
	foreign, _, _ := mustCreate(t, rand.Reader, testPassphrase)

	mixed := func(change func(*Header)) *Header {
		m := *next
		m.Slots = slices.Clone(next.Slots)
		change(&m)
		parsed, err := ParseHeader(m.Marshal())
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	for name, m := range map[string]*Header{
		"old slot for new": mixed(func(m *Header) { m.Slots[0] = h.Slots[0] }),
		"old slot added": mixed(func(m *Header) {
			m.Slots = append(m.Slots, h.Slots[0])
			m.Slots[2].ID = 3
		}),
		"old MAC":         mixed(func(m *Header) { m.mac = h.mac }),
		"old serial":      mixed(func(m *Header) { m.Serial = 1 }),
		"later serial":    mixed(func(m *Header) { m.Serial = 3 }),
		"slots swapped":   mixed(func(m *Header) { m.Slots[0], m.Slots[1] = m.Slots[1], m.Slots[0] }),
		"IDs swapped":     mixed(func(m *Header) { m.Slots[0].ID, m.Slots[1].ID = 2, 1 }),
		"foreign slot":    mixed(func(m *Header) { m.Slots[0] = foreign.Slots[0] }),
		"foreign slots":   mixed(func(m *Header) { m.Slots = foreign.Slots }),
		"foreign cluster": mixed(func(m *Header) { m.Cluster = foreign.Cluster }),
	} {
		for _, p := range []string{testPassphrase, "the new passphrase"} {
			got, err := m.UnlockPassphrase([]byte(p))
			wantRefused(t, name+", "+p, got, err)
		}
		got, err := m.UnlockRecovery(recovery)
		wantRefused(t, name+", recovery key", got, err)
	}
	got, err := mixed(func(m *Header) { m.Slots[0] = h.Slots[0] }).UnlockPassphrase([]byte(testPassphrase))
	if got != nil || !errors.Is(err, ErrHeader) {
		t.Errorf("a slot that opens in an altered header: %v", err)
	}
}

// A sealed root that opens under the slot's cipher doesn't count if the slot
// isn't committed to that cipher's key.
func TestSlotCommitment(t *testing.T) {
	h, root, _ := mustCreate(t, rand.Reader, testPassphrase)
	s := &h.Slots[0]
	aead, commitment := s.derive(h.Cluster, []byte(testPassphrase))
	for i := range commitment {
		s.commitment = commitment
		s.commitment[i] ^= 1
		aead.Seal(s.sealed[:0], s.nonce[:], root.key[:], s.associated(h.Cluster))
		h.mac = h.computeMAC(root)
		if got, err := h.UnlockPassphrase([]byte(testPassphrase)); got != nil || err != ErrWrongKey {
			t.Fatalf("opened in spite of its commitment: %v", err)
		}
	}
	s.commitment = commitment
	aead.Seal(s.sealed[:0], s.nonce[:], root.key[:], s.associated(h.Cluster))
	h.mac = h.computeMAC(root)
	got, err := h.UnlockPassphrase([]byte(testPassphrase))
	wantRoot(t, got, err, root)
}

func FuzzParseHeader(f *testing.F) {
	requireCorpus(f)
	// Both vectors have the same recovery key, which opens nothing else.
	var v headerVector
	var authentic [][]byte
	for _, path := range []string{"testdata/header-v1.json", "testdata/header-v1-256mib.json"} {
		readJSON(f, path, &v)
		authentic = append(authentic, unhex(f, v.Header))
	}
	recovery, err := ParseRecoveryKey(v.RecoveryKey)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		// With the checksum set right the rest of the parser is reached.
		for _, b := range [][]byte{b, resum(b)} {
			h, err := ParseHeader(b)
			if err != nil {
				if h != nil || !errors.Is(err, ErrHeader) {
					t.Fatalf("unexpected result or error: %v", err)
				}
				continue
			}
			if !bytes.Equal(h.Marshal(), b) {
				t.Fatal("accepted bytes that Marshal doesn't write")
			}
			root, err := h.UnlockRecovery(recovery)
			if !slices.ContainsFunc(authentic, func(a []byte) bool { return bytes.Equal(a, b) }) {
				wantRefused(t, "altered", root, err)
			} else if err != nil {
				t.Fatal(err)
			}
		}
	})
}
