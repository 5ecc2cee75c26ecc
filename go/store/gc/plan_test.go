package gc

import (
	"testing"
	"time"

	"powercloud.unidatum.com/go/store/grace"
	"powercloud.unidatum.com/go/store/survey"
)

// TestNoMoreIsDueThanTheRecordHolds: a chunk that is deleted without a mark that
// writers see would be deleted under them.
func TestNoMoreIsDueThanTheRecordHolds(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	found := &survey.Survey{}
	recorded := grace.NewRecord()
	for i := range byte(6) {
		found.Unreferenced.Add(survey.Key{i}, 1)
		recorded.Chunks[survey.Key{i}] = grace.Entry{Since: now.Add(-time.Hour - time.Duration(i)*time.Minute)}
	}
	// One that was deleted lately.
	recorded.Chunks[survey.Key{9}] = grace.Entry{Since: now, Condemned: true}
	c := &collection{options: Options{Grace: time.Hour, Now: func() time.Time { return now }}, most: 4, seen: map[survey.Key]bool{}}
	p := c.plan(found, nil, recorded)
	if len(p.due) != 3 || p.due[survey.Key{5}] == 0 || p.due[survey.Key{4}] == 0 || p.due[survey.Key{3}] == 0 {
		t.Errorf("due are %v, want the three that have waited longest", p.due)
	}
	if len(p.record.Chunks) != 7 {
		t.Errorf("%d chunks are recorded, want all seven", len(p.record.Chunks))
	}
}
