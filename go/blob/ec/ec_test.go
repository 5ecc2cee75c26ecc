package ec

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
	"powercloud.unidatum.com/go/blob/dir"
)

func TestConformance(t *testing.T) {
	forLayouts(t, func(t *testing.T, l layout) {
		blobtest.Run(t, func(t *testing.T) blob.Location { return newBed(t, l) })
	})
}

func TestConformanceOverDirectories(t *testing.T) {
	for _, l := range []layout{{2, 3}, {4, 6}} {
		t.Run(l.String(), func(t *testing.T) {
			blobtest.Run(t, func(t *testing.T) blob.Location {
				top := t.TempDir()
				var parts []blob.Location
				for i := range l.total {
					part, err := dir.New(filepath.Join(top, fmt.Sprint(i)))
					if err != nil {
						t.Fatal(err)
					}
					parts = append(parts, part)
				}
				location, err := New("ec", l.data, parts)
				if err != nil {
					t.Fatal(err)
				}
				return location
			})
		})
	}
}

// TestSupersededAtOnce: of many that several programs store at once, the one stays that is
// to, whoever comes last.
func TestSupersededAtOnce(t *testing.T) {
	forLayouts(t, func(t *testing.T, l layout) {
		b := newBed(t, l)
		others := []*bed{b, b.another(time.Hour), b.another(-time.Hour)}
		var wait sync.WaitGroup
		for i := range byte(20) {
			wait.Go(func() {
				err := blob.ErrContended
				for errors.Is(err, blob.ErrContended) {
					at := others[int(i)%len(others)]
					err = at.Supersede(t.Context(), manifestName, limit, []byte{i}, func(there []byte) bool { return there[0] >= i })
					err = errors.Join(err, at.Flush(t.Context()))
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		b.expect(manifestName, []byte{19})
	})
}

func TestNewRefuses(t *testing.T) {
	var parts []blob.Location
	for n := range 5 {
		for data := -1; data <= n+1; data++ {
			if _, err := New("ec", data, parts); (err == nil) != (data >= 1 && data < n) {
				t.Errorf("K = %d over %d parts: %v", data, n, err)
			}
		}
		parts = append(parts, blobtest.NewMemory("part"))
	}
	for len(parts) <= maxTotal {
		parts = append(parts, blobtest.NewMemory("part"))
	}
	if _, err := New("ec", 3, parts); err == nil {
		t.Errorf("a set of %d parts is made", len(parts))
	}
	if _, err := New("ec", maxTotal-1, parts[:maxTotal]); err != nil {
		t.Errorf("a set of %d parts: %v", maxTotal, err)
	}
}

func TestParts(t *testing.T) {
	b := newBed(t, layout{2, 3})
	if b.String() != "ec" || len(b.Parts()) != 3 || b.Parts()[2].String() != "./c" {
		t.Errorf("%s consists of %v", b, b.Parts())
	}
}
