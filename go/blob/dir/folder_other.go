//go:build !linux && !darwin

package dir

// openRoot opens the location's own folder.
func openRoot(path string) (folder, error) { return openRootFolder(path) }

// folderLimit returns how many folders a location may keep open: they take no
// handle here.
func folderLimit() int { return placeCount }
