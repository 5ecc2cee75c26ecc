package keys

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

func TestRootWiped(t *testing.T) {
	for name, root := range map[string]*Root{"zero": new(Root), "wiped": wiped(t)} {
		if root.key != [rootSize]byte{} {
			t.Errorf("%s: the key is still there", name)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: derived a key from no key", name)
				}
			}()
			root.Derive(PurposeChunkSeal)
		}()
		h, _, _ := mustCreate(t, rand.Reader, testPassphrase)
		if _, err := h.newPassphraseSlot(rand.Reader, root, 3, []byte(testPassphrase), cheap()); err == nil {
			t.Errorf("%s: made a slot for no key", name)
		}
	}
}

func wiped(t *testing.T) *Root {
	root, err := NewRoot(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	root.Wipe()
	root.Wipe()
	return root
}

func TestRootIsNotPrinted(t *testing.T) {
	root, err := NewRoot(strings.NewReader("abcdefghijklmnopqrstuvwxyzABCDEF"))
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		for _, arg := range []any{root, *root} {
			if got := fmt.Sprintf(verb, arg); got != "keys.Root(secret)" {
				t.Errorf("%s of %T: %s", verb, arg, got)
			}
		}
	}
}

func TestNewRootShortRandom(t *testing.T) {
	for n := range rootSize {
		if root, err := NewRoot(bytes.NewReader(make([]byte, n))); err == nil || root != nil {
			t.Fatalf("made a root key from %d random bytes", n)
		}
	}
}

func TestCheckPassphrase(t *testing.T) {
	for _, test := range []struct {
		passphrase string
		ok         bool
	}{
		{"", false},
		{"elevenchars", false},
		{"twelve chars", true},
		{"zwölf Zeiche", true},
		{"zwölf Zeich", false}, // 12 bytes, 11 characters
		{"пароль-паро", false}, // 21 bytes, 11 characters
		{"пароль-парол", true},
		{strings.Repeat("x", MaxPassphrase), true},
		{strings.Repeat("x", MaxPassphrase+1), false},
		{"twelve chars\n", false},
		{"twelve\x00chars", false},
		{"twelve chars\xff", false},
	} {
		err := CheckPassphrase([]byte(test.passphrase))
		if (err == nil) != test.ok {
			t.Errorf("%q: %v", test.passphrase, err)
		}
		if err != nil && test.passphrase != "" && strings.Contains(err.Error(), test.passphrase) {
			t.Errorf("%q is in its error", test.passphrase)
		}
		if _, _, _, err := create(rand.Reader, []byte(test.passphrase), cheap()); (err == nil) != test.ok {
			t.Errorf("%q: create: %v", test.passphrase, err)
		}
	}
}

func TestParseClusterID(t *testing.T) {
	const good = "66770d7cd1f5522f114c0381e8fe93e1"
	id, err := ParseClusterID(good)
	if err != nil || id.String() != good || id[0] != 0x66 || id[15] != 0xe1 {
		t.Fatalf("%s: %v, %v", good, id, err)
	}
	for _, bad := range []string{
		"", good[1:], good + "0", good + "\n", " " + good[1:], strings.ToUpper(good), "g" + good[1:], "é" + good[2:],
	} {
		if id, err := ParseClusterID(bad); err == nil || id != (ClusterID{}) {
			t.Errorf("%q was read as a cluster ID", bad)
		}
	}
}

func TestParseRecoveryKey(t *testing.T) {
	const good = "LJRF-5NB4-BMPX-PAB2-CZVD-JRKL-XB6L-TF52"
	k, err := ParseRecoveryKey(good)
	if err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(k[:]); got != "5a625eb43c0b1f77803a166a34c54bb87cb997ba" {
		t.Fatalf("%s is %s", good, got)
	}
	if k.String() != good {
		t.Fatalf("%s comes back as %s", good, k)
	}
	for _, bad := range []string{"", good[1:], good + "A", good[:39] + "9", good[:39] + "!"} {
		k, err := ParseRecoveryKey(bad)
		if err == nil || k != (RecoveryKey{}) {
			t.Errorf("%q was read as a recovery key", bad)
			continue
		}
		if !recoveryError().MatchString(err.Error()) {
			t.Errorf("%q: unexpected error, which might show the key: %v", bad, err)
		}
	}
}

// recoveryError matches every error of ParseRecoveryKey: no part of it can come
// from the key but numbers.
func recoveryError() *regexp.Regexp {
	return regexp.MustCompile(`^keys: cannot read the recovery key; type its 32 letters and digits as they were written down: code: ` +
		`(it has \d+ letters and digits instead of 32|character \d+, not counting dashes and spaces, is not one of A-Z and 2-7)$`)
}

func FuzzParseRecoveryKey(f *testing.F) {
	requireCorpus(f)
	f.Fuzz(func(t *testing.T, s string) {
		k, err := ParseRecoveryKey(s)
		if err != nil {
			if k != (RecoveryKey{}) || !recoveryError().MatchString(err.Error()) {
				t.Fatalf("unexpected result or error: %v", err)
			}
			return
		}
		again, err := ParseRecoveryKey(k.String())
		if err != nil || again != k {
			t.Fatalf("%s doesn't read back: %v", k, err)
		}
	})
}

// After a passphrase was tried, the memory that took is gone, and the collector
// doesn't let the heap grow as if it were still there.
func TestStretchReleasesMemory(t *testing.T) {
	before := heap()
	a := Argon2{Memory: 64 << 10, Passes: 1, Lanes: 4}
	if len(a.stretch([]byte(testPassphrase), make([]byte, saltSize))) != keySize {
		t.Fatal("wrong size")
	}
	after := heap()
	const slack = 8 << 20
	if after.HeapAlloc > before.HeapAlloc+slack {
		t.Errorf("heap grew from %d to %d bytes", before.HeapAlloc, after.HeapAlloc)
	}
	if after.NextGC > 2*before.HeapAlloc+2*slack {
		t.Errorf("the next collection is due at %d bytes", after.NextGC)
	}
	if kept := after.HeapSys - after.HeapReleased; kept > before.HeapSys-before.HeapReleased+slack {
		t.Errorf("%d bytes are still held from the system", kept)
	}
}

func heap() runtime.MemStats {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m
}

func BenchmarkUnlockPassphrase(b *testing.B) {
	h, _, _, err := Create(rand.Reader, []byte(testPassphrase))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := h.UnlockPassphrase([]byte(testPassphrase)); err != nil {
			b.Fatal(err)
		}
	}
}
