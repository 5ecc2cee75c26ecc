package repository

import (
	"context"
	"errors"
	"fmt"

	"powercloud.unidatum.com/go/blob"
)

// ErrForeign means that a location holds another cluster's key header.
var ErrForeign = errors.New("holds a different cluster's key header; remove it from --repo")

// refused is a location whose key header isn't this cluster's, or could not be
// read, so that it may be another's. Nothing is read from it and nothing written
// to it.
type refused struct {
	location blob.Location
	why      error
}

func (r refused) String() string { return r.location.String() }

func (r refused) Probe(context.Context) error { return r.why }

func (r refused) Put(context.Context, blob.Name, []byte) error {
	if errors.Is(r.why, ErrForeign) {
		return r.why
	}
	return fmt.Errorf("its key header can't be read: %w", r.why)
}

func (r refused) Get(context.Context, blob.Name, []byte, int64) ([]byte, error) {
	return nil, r.why
}

func (r refused) Stat(context.Context, blob.Name) (blob.Info, error) {
	return blob.Info{}, r.why
}

func (r refused) Delete(context.Context, blob.Name) error { return r.why }

func (r refused) List(context.Context, blob.Kind, func(blob.Info) error) error { return r.why }

func (r refused) Flush(context.Context) error { return r.why }

// Close ends what was begun before the location was refused.
func (r refused) Close(ctx context.Context) error {
	if closer, ok := r.location.(blob.Closer); ok {
		return closer.Close(ctx)
	}
	return nil
}
