package quorum

import "powercloud.unidatum.com/go/blob"

// Corrupt returns the locations that had a corrupt copy of what another location
// served during the set's life, in the locations' order. Such a location needs a
// repair. That one lacks a copy, or has an older version, is nothing to remark on:
// it may be new, or have been down.
func (s *Set) Corrupt() []blob.Location {
	s.mu.Lock()
	defer s.mu.Unlock()
	var corrupt []blob.Location
	for i, is := range s.corrupt {
		if is {
			corrupt = append(corrupt, s.locations[i])
		}
	}
	return corrupt
}

// NoteCorrupt enters that the location with index i had a copy that failed
// authentication of a blob that another location served.
func (s *Set) NoteCorrupt(i int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.corrupt[i] = true
}
