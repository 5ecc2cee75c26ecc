package store_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"powercloud.unidatum.com/go/store"
	"powercloud.unidatum.com/go/store/storetest"
)

func TestMemoryForManifestsThatAreReplacedIsBounded(t *testing.T) {
	b := storetest.New(t, 3)
	var names []string
	var sources []store.Source
	for i := range 20 {
		name := fmt.Sprint(i)
		if i%2 == 0 {
			b.PlantManifest(name, 8000)
		}
		names = append(names, name)
		sources = append(sources, storetest.Source(name, []byte(name)))
	}
	meter := &storetest.Meter{}
	b.Wrap = meter.Wrap
	b.Now = b.Now.Add(time.Hour)
	var stored []string
	err := b.Open().PutAll(context.Background(), slices.Values(sources), nil, func(objects []store.Object) { stored = append(stored, storetest.Names(objects)...) })
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(stored, names) {
		t.Errorf("stored %q, want %q", stored, names)
	}
	if most := meter.Most(); most > 256<<20 {
		t.Errorf("manifests could take %d MiB at a time", most>>20)
	}
	objects, err := b.Open().List(context.Background(), "")
	if err != nil || objects.Len() != len(names) {
		t.Fatalf("listed %d objects, %v", objects.Len(), err)
	}
	for o := range objects.Objects() {
		if o.Size != int64(len(o.Name)) {
			t.Errorf("%s has %d bytes: it was not replaced", o.Name, o.Size)
		}
	}
}
