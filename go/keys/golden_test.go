package keys

import (
	"bytes"
	"encoding/hex"
	"path/filepath"
	"testing"
)

// headerVector is one file testdata/header-*.json. Files are added, never
// changed: every header ever written must go on being read.
type headerVector struct {
	Passphrase  string `json:"passphrase"`
	RecoveryKey string `json:"recovery_key"`
	Root        string `json:"root"`
	Cluster     string `json:"cluster"`
	Serial      uint64 `json:"serial"`
	Header      string `json:"header"`
}

func TestGoldenHeadersRead(t *testing.T) {
	paths, err := filepath.Glob("testdata/header-*.json")
	if err != nil || len(paths) < 2 {
		t.Fatalf("golden vectors are missing: %v %v", paths, err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			var v headerVector
			readJSON(t, path, &v)
			h, err := ParseHeader(unhex(t, v.Header))
			if err != nil {
				t.Fatal(err)
			}
			if h.Cluster.String() != v.Cluster || h.Serial != v.Serial {
				t.Fatalf("cluster %s serial %d, want %s and %d", h.Cluster, h.Serial, v.Cluster, v.Serial)
			}
			recovery, err := ParseRecoveryKey(v.RecoveryKey)
			if err != nil {
				t.Fatal(err)
			}
			root, err := h.UnlockRecovery(recovery)
			if err != nil {
				t.Fatal(err)
			}
			if got := hex.EncodeToString(root.key[:]); got != v.Root {
				t.Fatalf("recovery key gives root %s, want %s", got, v.Root)
			}
			root, err = h.UnlockPassphrase([]byte(v.Passphrase))
			if err != nil {
				t.Fatal(err)
			}
			if got := hex.EncodeToString(root.key[:]); got != v.Root {
				t.Fatalf("passphrase gives root %s, want %s", got, v.Root)
			}
		})
	}
}

// What Create writes today is version 1, to the byte, whatever the cost.
func TestGoldenHeaderWritten(t *testing.T) {
	for path, cost := range map[string]Argon2{
		"testdata/header-v1.json":        {Memory: 64, Passes: 2, Lanes: 4},
		"testdata/header-v1-256mib.json": {Memory: 256 * 1024, Passes: 3, Lanes: 4},
	} {
		var v headerVector
		readJSON(t, path, &v)
		h, root, recovery, err := create(new(countingReader), []byte(v.Passphrase), cost)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(h.Marshal(), unhex(t, v.Header)) {
			t.Errorf("%s: the header written is\n%x", path, h.Marshal())
		}
		if recovery.String() != v.RecoveryKey || hex.EncodeToString(root.key[:]) != v.Root {
			t.Errorf("%s: recovery key or root differ", path)
		}
	}
}

// Create's cost is the specified one.
func TestCreateCost(t *testing.T) {
	h, root, _, err := Create(new(countingReader), []byte("correct horse battery"))
	if err != nil {
		t.Fatal(err)
	}
	root.Wipe()
	if got, want := h.Slots[0].Argon2, (Argon2{Memory: 256 * 1024, Passes: 2, Lanes: 4}); got != want {
		t.Errorf("a new passphrase slot costs %+v, want %+v", got, want)
	}
}

func TestGoldenDerivation(t *testing.T) {
	var v struct {
		Root string             `json:"root"`
		Keys map[Purpose]string `json:"keys"`
	}
	readJSON(t, "testdata/derive-v1.json", &v)
	root, err := NewRoot(bytes.NewReader(unhex(t, v.Root)))
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]Purpose)
	for _, purpose := range []Purpose{
		PurposeChunkID, PurposeChunkName, PurposeChunkSeal, PurposeManifestID,
		PurposeManifestSeal, PurposeRecordSeal, PurposeGraceRecordName,
		PurposeLostRecordName, PurposeTombstoneRecordName, PurposeRemovalRecordName,
		PurposeCatalogSeal, PurposeAuthority, PurposeStateVolumes, PurposeHeaderMAC,
	} {
		got := hex.EncodeToString(root.Derive(purpose))
		if got != v.Keys[purpose] {
			t.Errorf("%q: %s, want %q", purpose, got, v.Keys[purpose])
		}
		if other, ok := seen[got]; ok {
			t.Errorf("%q and %q have the same key", purpose, other)
		}
		seen[got] = purpose
	}
	if len(seen) != len(v.Keys) {
		t.Errorf("%d vectors for %d purposes", len(v.Keys), len(seen))
	}
}
