package header

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"powercloud.unidatum.com/go/cluster/volumeid"
	"powercloud.unidatum.com/go/pki"
)

var owner = Owner{
	Volume: volumeid.ID{0x92, 0x28, 0x34, 15: 0x0f},
	Node:   pki.NodeID{0x26, 0x2c, 0x2f, 0xdc, 0x86, 0x1a, 0x9c, 0xf2},
	Name:   "home-1",
}

// counting yields 0, 1, 2, ... 255, 0, ...: anyone can make the golden vectors
// again.
type counting struct{ next byte }

func (c *counting) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = c.next
		c.next++
	}
	return len(p), nil
}

func newHeader(t testing.TB) (h *Header, key, admin *Key) {
	t.Helper()
	admin = new(Key)
	if _, err := rand.Read(admin[:]); err != nil {
		t.Fatal(err)
	}
	h, key, err := New(rand.Reader, owner, admin)
	if err != nil {
		t.Fatal(err)
	}
	return h, key, admin
}

// grown is h with slots of all kinds.
func grown(t testing.TB, h *Header, key *Key) *Header {
	t.Helper()
	next, err := h.With(key, "colo-2", append([]Slot{
		{SlotPeers, bytes.Repeat([]byte("peers"), MaxContent/5)}, {SlotTPM, []byte("sealed")},
	}, h.Slots...))
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func TestUnlock(t *testing.T) {
	h, key, admin := newHeader(t)
	parsed, err := Parse(append(h.Marshal(), "and more"...))
	if err != nil || !reflect.DeepEqual(parsed, h) {
		t.Fatalf("%+v, %v", parsed, err)
	}
	if len(h.Marshal()) > 512 {
		t.Errorf("the first header has %d bytes, more than a sector", len(h.Marshal()))
	}
	opened, err := parsed.Unlock(admin)
	if err != nil || *opened != *key {
		t.Fatalf("it gave another key, %v", err)
	}
	wrong := *admin
	wrong[31] ^= 1
	if _, err := parsed.Unlock(&wrong); !errors.Is(err, ErrWrongKey) {
		t.Errorf("a wrong key: %v", err)
	}
	next := grown(t, h, key)
	if next.Serial != 2 || next.Owner.Name != "colo-2" || next.Owner.Volume != owner.Volume || next.Slots[2].Kind != SlotPeers {
		t.Errorf("the next header is %+v", next)
	}
	if opened, err := next.Unlock(admin); err != nil || *opened != *key {
		t.Errorf("the next header: %v", err)
	}
	if parsed, err = Parse(next.Marshal()); err != nil || !reflect.DeepEqual(parsed, next) {
		t.Errorf("the next header is read as %+v, %v", parsed, err)
	}
	if content, err := key.SectorKey(owner.Volume); err != nil || len(content) != SectorKeySize {
		t.Errorf("the key of sectors has %d bytes, %v", len(content), err)
	}
	key.Wipe()
	if *key != (Key{}) {
		t.Error("the key is still there")
	}
}

// TestWrap binds a wrapped key to its volume and its kind of slot.
func TestWrap(t *testing.T) {
	h, key, admin := newHeader(t)
	wrapped := h.Slots[0].Content
	if opened, err := Unwrap(owner.Volume, SlotAdmin, wrapped, admin); err != nil || *opened != *key {
		t.Errorf("%v", err)
	}
	if _, err := Unwrap(owner.Volume, SlotTPM, wrapped, admin); !errors.Is(err, ErrWrongKey) {
		t.Errorf("another kind: %v", err)
	}
	if _, err := Unwrap(volumeid.ID{1}, SlotAdmin, wrapped, admin); !errors.Is(err, ErrWrongKey) {
		t.Errorf("another volume: %v", err)
	}
	if _, err := Unwrap(owner.Volume, SlotAdmin, wrapped[1:], admin); !errors.Is(err, ErrHeader) {
		t.Errorf("a short one: %v", err)
	}
	for n := range KeySize + 24 {
		if _, _, err := New(io.LimitReader(rand.Reader, int64(n)), owner, admin); err == nil {
			t.Fatalf("made a header of %d random bytes", n)
		}
	}
}

// resum sets the checksum of an altered header right.
func resum(b []byte) []byte {
	b = bytes.Clone(b)
	if len(b) >= prefixSize+sha256.Size {
		binary.BigEndian.PutUint32(b[len(magic)+2:], uint32(len(b)))
		sum := sha256.Sum256(b[:len(b)-sha256.Size])
		copy(b[len(b)-sha256.Size:], sum[:])
	}
	return b
}

// TestAltered changes every byte, by accident and on purpose: never a key.
func TestAltered(t *testing.T) {
	h, key, admin := newHeader(t)
	next, err := h.With(key, h.Owner.Name, append(h.Slots, Slot{SlotTPM, []byte("sealed")}))
	if err != nil {
		t.Fatal(err)
	}
	b := next.Marshal()
	for i := range b {
		for _, mask := range []byte{0x01, 0x80, 0xff} {
			bad := bytes.Clone(b)
			bad[i] ^= mask
			if _, err := Parse(bad); !errors.Is(err, ErrHeader) {
				t.Fatalf("byte %d: %v", i, err)
			}
			altered, err := Parse(resum(bad))
			if i >= len(b)-sha256.Size || i >= len(magic)+2 && i < prefixSize {
				continue // Setting the size and the sum right undid the change.
			}
			if err == nil {
				_, err = altered.Unlock(admin)
			}
			if !errors.Is(err, ErrHeader) && !errors.Is(err, ErrWrongKey) {
				t.Fatalf("byte %d, with the checksum set right: %v", i, err)
			}
		}
		for what, cut := range map[string][]byte{"cut": b[:i], "cut, sum": resum(b[:i])} {
			if _, err := Parse(cut); !errors.Is(err, ErrHeader) {
				t.Fatalf("%s at %d: %v", what, i, err)
			}
		}
	}
}

func TestRules(t *testing.T) {
	h, key, _ := newHeader(t)
	for name, change := range map[string]func(*Header){
		"unchanged":         func(*Header) {},
		"serial 0":          func(h *Header) { h.Serial = 0 },
		"no name":           func(h *Header) { h.Owner.Name = "" },
		"long name":         func(h *Header) { h.Owner.Name = strings.Repeat("n", MaxName+1) },
		"escape":            func(h *Header) { h.Owner.Name = "a\x1b[2J" },
		"blank":             func(h *Header) { h.Owner.Name = "a b" },
		"no slots":          func(h *Header) { h.Slots = nil },
		"no admin slot":     func(h *Header) { h.Slots = []Slot{{SlotTPM, []byte("x")}} },
		"two admin slots":   func(h *Header) { h.Slots = append(h.Slots, h.Slots[0]) },
		"short admin slot":  func(h *Header) { h.Slots = []Slot{{SlotAdmin, h.Slots[0].Content[1:]}} },
		"out of order":      func(h *Header) { h.Slots = append(h.Slots, Slot{SlotPeers, []byte("x")}, Slot{SlotTPM, []byte("x")}) },
		"empty slot":        func(h *Header) { h.Slots = append(h.Slots, Slot{SlotTPM, nil}) },
		"long slot":         func(h *Header) { h.Slots = append(h.Slots, Slot{SlotTPM, make([]byte, MaxContent+1)}) },
		"unknown slot kind": func(h *Header) { h.Slots = append(h.Slots, Slot{4, []byte("x")}) },
	} {
		bad := *h
		bad.Slots = slices.Clone(h.Slots)
		change(&bad)
		mac, err := bad.computeMAC(key)
		if err != nil {
			t.Fatal(err)
		}
		bad.mac = mac
		want := name == "unchanged"
		if _, err := Parse(bad.Marshal()); (err == nil) != want || err != nil && !errors.Is(err, ErrHeader) {
			t.Errorf("%s: %v", name, err)
		}
		if err := bad.Verify(key); (err == nil) != want {
			t.Errorf("%s is authentic: %v", name, err)
		}
	}
	altered := *h
	altered.Serial = 7
	if _, err := altered.With(key, h.Owner.Name, h.Slots); !errors.Is(err, ErrHeader) {
		t.Errorf("an altered header was made authentic: %v", err)
	}
	last := *h
	last.Serial = math.MaxUint64
	last.mac, _ = last.computeMAC(key)
	if _, err := last.With(key, h.Owner.Name, h.Slots); !errors.Is(err, ErrHeader) {
		t.Errorf("the serial went round: %v", err)
	}
	b := h.Marshal()
	b[len(magic)+1] = 2
	if _, err := Parse(resum(b)); err == nil || err.Error() != "bad volume header: its format version is 2 and this program reads version 1" {
		t.Errorf("another version: %v", err)
	}
}

// vector is one file testdata/header-*.json. Files are added, never changed.
type vector struct {
	Admin      string `json:"admin_key"`
	Key        string `json:"volume_key"`
	SectorKey  string `json:"sector_key"`
	Volume     string `json:"volume"`
	Node       string `json:"node"`
	Name       string `json:"name"`
	Serial     uint64 `json:"serial"`
	TPMSlot    string `json:"tpm_slot"`
	PeersSlot  string `json:"peers_slot"`
	Marshalled string `json:"header"`
}

func describe(t *testing.T, h *Header, key, admin *Key) vector {
	t.Helper()
	sectors, err := key.SectorKey(h.Owner.Volume)
	if err != nil {
		t.Fatal(err)
	}
	tpm, _ := h.Slot(SlotTPM)
	peers, _ := h.Slot(SlotPeers)
	return vector{
		hex.EncodeToString(admin[:]), hex.EncodeToString(key[:]), hex.EncodeToString(sectors),
		h.Owner.Volume.String(), h.Owner.Node.String(), h.Owner.Name, h.Serial,
		hex.EncodeToString(tpm.Content), hex.EncodeToString(peers.Content), hex.EncodeToString(h.Marshal()),
	}
}

// TestGolden reads the vectors, and writes them again.
func TestGolden(t *testing.T) {
	admin := new(Key)
	for i := range admin {
		admin[i] = 0xa0 + byte(i)
	}
	first, key, err := New(new(counting), owner, admin)
	if err != nil {
		t.Fatal(err)
	}
	second, err := first.With(key, "colo-2", append(first.Slots, Slot{SlotTPM, []byte("what a TPM sealed")}, Slot{SlotPeers, []byte("shares")}))
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob("testdata/header-*.json")
	if err != nil || len(paths) < 2 {
		t.Fatalf("golden vectors are missing: %v, %v", paths, err)
	}
	written := map[string]*Header{"header-v1.json": first, "header-v1-slots.json": second}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var want vector
		if err := json.Unmarshal(content, &want); err != nil {
			t.Fatal(err)
		}
		b, err := hex.DecodeString(want.Marshalled)
		if err != nil {
			t.Fatal(err)
		}
		h, err := Parse(b)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		opened, err := h.Unlock(admin)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if got := describe(t, h, opened, admin); got != want {
			t.Errorf("%s: it is %+v, want %+v", path, got, want)
		}
		if h := written[filepath.Base(path)]; h == nil || !bytes.Equal(h.Marshal(), b) {
			t.Errorf("%s isn't what is written today", path)
		}
	}
}

func FuzzParse(f *testing.F) {
	h, key, admin := newHeader(f)
	f.Add(h.Marshal())
	f.Add(grown(f, h, key).Marshal())
	f.Add([]byte(magic))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		// With the size and the checksum set right the rest of the parser is reached.
		for _, b := range [][]byte{b, resum(b)} {
			parsed, err := Parse(b)
			if err != nil {
				if parsed != nil || !errors.Is(err, ErrHeader) {
					t.Fatalf("unexpected result or error: %v", err)
				}
				continue
			}
			if !bytes.HasPrefix(b, parsed.Marshal()) {
				t.Fatal("accepted bytes that Marshal doesn't write")
			}
			if opened, err := parsed.Unlock(admin); err == nil && (*opened != *key || parsed.Owner.Volume != owner.Volume) {
				t.Fatal("an altered header was opened")
			}
		}
	})
}
