package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"powercloud.unidatum.com/go/cluster/registry"
	"powercloud.unidatum.com/go/store"
)

// SystemObjects is a store as far as packages need it that keep objects of the
// system's own there, whole and in memory.
type SystemObjects struct{ Store *store.Store }

var _ registry.Objects = SystemObjects{}

// List returns the names of the objects in a folder of the system's own.
func (o SystemObjects) List(ctx context.Context, folder string) ([]string, error) {
	return o.Store.ListFolder(ctx, folder)
}

// Read returns an object's content, of at most limit bytes. The error wraps
// fs.ErrNotExist if there is no such object.
func (o SystemObjects) Read(ctx context.Context, name string, limit int64) ([]byte, error) {
	content := &bounded{limit: limit}
	_, err := o.Store.Get(ctx, name, content, nil)
	if errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	if err != nil {
		return nil, err
	}
	return content.Bytes(), nil
}

// Write stores an object, durably at a quorum of locations.
func (o SystemObjects) Write(ctx context.Context, name string, content []byte) error {
	_, err := o.Store.Put(ctx, store.Source{
		Name: name,
		Size: int64(len(content)),
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
	}, nil)
	return err
}

// Remove removes an object, durably at a quorum of locations. That there is none is no
// error.
func (o SystemObjects) Remove(ctx context.Context, name string) error {
	err := o.Store.Remove(ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// bounded is a buffer that refuses more than so many bytes.
type bounded struct {
	bytes.Buffer
	limit int64
}

func (b *bounded) Write(p []byte) (int, error) {
	if int64(b.Len()+len(p)) > b.limit {
		return 0, fmt.Errorf("it is larger than %d bytes", b.limit)
	}
	return b.Buffer.Write(p)
}
