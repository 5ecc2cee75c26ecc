package store_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/go/blob/blobtest"
	"powercloud.unidatum.com/go/store/storetest"
)

// behind returns a testbed whose last location missed a new version of an
// object, and the warnings of its stores.
func behind(t *testing.T) (*storetest.Testbed, *[]string) {
	t.Helper()
	b := storetest.New(t, 3)
	storetest.Put(t, b.Open(), "x", []byte("old"))
	b.Now = b.Now.Add(time.Hour)
	storetest.Put(t, b.Open(0, 1), "x", []byte("new"))
	var warnings []string
	b.Warn = func(line string) { warnings = append(warnings, line) }
	return b, &warnings
}

func TestTooFewAnswersForTheNewestVersionAreWarnedOfOnce(t *testing.T) {
	b, warnings := behind(t)
	s, faulty := openHooked(b, nil)
	faulty[0].Fail(blobtest.Get, nil)
	// Any two locations have every version that was acknowledged.
	storetest.WantContent(t, s, "x", []byte("new"))
	if len(*warnings) != 0 {
		t.Errorf("warned %q though a quorum was read", *warnings)
	}
	faulty[1].Fail(blobtest.Get, nil)
	storetest.WantContent(t, s, "x", []byte("old"))
	if _, err := s.List(context.Background(), ""); err != nil {
		t.Error(err)
	}
	if len(*warnings) != 1 || !strings.Contains((*warnings)[0], "only 1 of 3 locations could be read") ||
		!strings.Contains((*warnings)[0], "location-1: ") {
		t.Errorf("warned %q, want one line that names the locations", *warnings)
	}
}

func TestCorruptCopyDoesNotTellTheNewestVersion(t *testing.T) {
	b, warnings := behind(t)
	s, faulty := openHooked(b, nil)
	faulty[0].Corrupt()
	faulty[1].Corrupt()
	if _, err := s.Stat(context.Background(), "x"); err != nil {
		t.Error(err)
	}
	if len(*warnings) != 1 {
		t.Errorf("warned %q, want one line", *warnings)
	}
}

func TestTombstoneThatMayBeOldIsWarnedOf(t *testing.T) {
	b, warnings := behind(t)
	if err := b.Open().Remove(context.Background(), "x"); err != nil {
		t.Fatal(err)
	}
	b.Now = b.Now.Add(time.Hour)
	storetest.Put(t, b.Open(0, 1), "x", []byte("again"))
	s, faulty := openHooked(b, nil)
	faulty[0].Fail(blobtest.All, nil)
	faulty[1].Fail(blobtest.All, nil)
	if _, err := s.Get(context.Background(), "x", io.Discard, nil); err == nil {
		t.Error("what the only location has as removed was read")
	}
	if len(*warnings) != 1 {
		t.Errorf("warned %q, want one line", *warnings)
	}
}

// TestLargerQuorumDoesNotMakeReadsCareless: others write with a majority, whatever this
// command's quorum is.
func TestLargerQuorumDoesNotMakeReadsCareless(t *testing.T) {
	b, warnings := behind(t)
	b.Quorum = 3
	s, faulty := openHooked(b, nil)
	faulty[0].Fail(blobtest.All, nil)
	storetest.WantContent(t, s, "x", []byte("new"))
	if _, err := s.List(context.Background(), ""); err != nil {
		t.Errorf("with two of three: %v", err)
	}
	if len(*warnings) != 1 || !strings.Contains((*warnings)[0], "can't be listed") {
		t.Errorf("warned %q, want what can't be listed", *warnings)
	}
	faulty[1].Fail(blobtest.All, nil)
	storetest.WantContent(t, s, "x", []byte("old"))
	if len(*warnings) != 2 || !strings.Contains((*warnings)[1], "only 1 of 3 locations could be read") {
		t.Errorf("warned %q, want that there may be newer versions", *warnings)
	}
	_, err := s.List(context.Background(), "")
	storetest.WantError(t, err, nil, "objects may be missing from the list", "location-1")
}
