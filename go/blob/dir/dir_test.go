package dir

import (
	"testing"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
)

func TestConformance(t *testing.T) {
	blobtest.Run(t, func(t *testing.T) blob.Location {
		l, err := New(t.TempDir() + "/pc")
		if err != nil {
			t.Fatal(err)
		}
		return l
	})
}
