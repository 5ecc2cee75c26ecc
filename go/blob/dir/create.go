package dir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"powercloud.unidatum.com/go/blob"
)

var (
	_ blob.Creator = (*Location)(nil)
	_ blob.Looker  = (*Location)(nil)
)

// Create stores a blob where there is none; see blob.Creator. On a file system that
// can neither rename to a free name nor link, it looks first and stores then, in two
// steps.
func (l *Location) Create(ctx context.Context, name blob.Name, data []byte) error {
	return l.store(ctx, name, data, installNew)
}

// CreateAbsent is Create for somebody who has just looked; see blob.Looker.
func (l *Location) CreateAbsent(ctx context.Context, name blob.Name, data []byte) error {
	return l.Create(ctx, name, data)
}

// installNew is the install of a file where there must not be one.
func installNew(temporary folder, temporaryName string, to folder, name string) error {
	switch err := temporary.renameNew(temporaryName, to, name); {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrExist):
		return blob.ErrExists
	case errors.Is(err, fs.ErrNotExist):
		return err
	}
	switch _, err := to.stat(name); {
	case err == nil:
		return blob.ErrExists
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("looking for an earlier one: %w", err)
	}
	return temporary.rename(temporaryName, to, name)
}
