package quorum

import "powercloud.unidatum.com/go/blob"

// defect is what was wrong with a copy, in ascending order of how bad it is.
type defect int

const (
	none defect = iota
	lacking
	corrupt
)

// Defect says that a location had no good copy of something that another location
// served.
type Defect struct {
	Location blob.Location
	// Corrupt says that a copy there failed authentication. Otherwise it was
	// missing, or an older version.
	Corrupt bool
}

// Defects returns the locations whose copies reads had to pass over during the
// set's life, in the locations' order. Such a location needs a repair. One that
// didn't answer isn't among them.
func (s *Set) Defects() []Defect {
	s.mu.Lock()
	defer s.mu.Unlock()
	var defects []Defect
	for i, d := range s.defects {
		if d != none {
			defects = append(defects, Defect{s.locations[i], d == corrupt})
		}
	}
	return defects
}

// NoteLacking enters that the location with index i had no copy of a blob that
// another location served, or an older version.
func (s *Set) NoteLacking(i int) { s.noteDefect(i, lacking) }

// NoteCorrupt enters that the location with index i had a copy that failed
// authentication of a blob that another location served.
func (s *Set) NoteCorrupt(i int) { s.noteDefect(i, corrupt) }

func (s *Set) noteDefect(i int, d defect) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.defects[i] = max(s.defects[i], d)
}
