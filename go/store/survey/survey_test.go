package survey_test

import (
	"context"
	"fmt"
	"testing"

	"powercloud.unidatum.com/go/store/storetest"
	"powercloud.unidatum.com/go/store/survey"
)

func TestMemoryForManifestsIsBounded(t *testing.T) {
	b := storetest.New(t, 3)
	const objects, chunks = 40, 8000
	for i := range objects {
		b.PlantManifest(fmt.Sprint(i), chunks)
	}
	meter := &storetest.Meter{}
	b.Wrap = meter.Wrap
	surveyor, err := survey.New(b.Set(), b.Cluster.Root(t))
	if err != nil {
		t.Fatal(err)
	}
	found, err := surveyor.Take(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if found.Objects != objects || found.InUse.Len() != chunks {
		t.Errorf("found %d objects with %d chunks, want %d with %d", found.Objects, found.InUse.Len(), objects, chunks)
	}
	if most := meter.Most(); most > 256<<20 {
		t.Errorf("manifests could take %d MiB at a time", most>>20)
	}
}
