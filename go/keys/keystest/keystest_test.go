package keystest

import (
	"bytes"
	"testing"

	"powercloud.unidatum.com/go/keys"
)

func TestClusters(t *testing.T) {
	first, second := First(t), Second(t)
	if first.ID == second.ID || first.Recovery == second.Recovery || first.Passphrase != second.Passphrase {
		t.Fatal("the clusters aren't two with one passphrase")
	}
	for _, c := range []Cluster{first, second} {
		h, err := keys.ParseHeader(c.Header)
		if err != nil {
			t.Fatal(err)
		}
		if h.Cluster != c.ID || h.Serial != 1 {
			t.Errorf("cluster %s, serial %d", h.Cluster, h.Serial)
		}
		root, err := h.UnlockPassphrase([]byte(c.Passphrase))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(root.Derive(keys.PurposeChunkID), c.Root(t).Derive(keys.PurposeChunkID)) {
			t.Error("the passphrase and the recovery key give different roots")
		}
	}
}
