package s3

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"powercloud.unidatum.com/go/blob"
)

// List lists the blobs of a kind, in the order of their IDs; see blob.Location. A
// listing of many pages is read in several places at once.
func (l *Location) List(ctx context.Context, kind blob.Kind, fn func(blob.Info) error) error {
	if kind == blob.KindHeader {
		info, err := l.Stat(ctx, blob.Header())
		switch {
		case errors.Is(err, blob.ErrNotFound):
			return nil
		case err != nil:
			return err
		}
		return fn(info)
	}
	if err := blob.CheckCall(ctx, blob.Name{Kind: kind}); err != nil {
		return err
	}
	first := &scan{location: l, kind: kind}
	page, err := first.next(ctx)
	if err != nil {
		return err
	}
	for _, info := range page {
		if err := fn(info); err != nil {
			return err
		}
	}
	if first.done {
		return ctx.Err()
	}
	return listAll(ctx, first.split(), fn)
}

const (
	// listers is how many scans of one listing are under way at once.
	listers = 16
	// pagesAhead is how many pages each reads before it is its turn.
	pagesAhead = 3
)

// errStop carries an error of the caller's function out of a listing unchanged.
type errStop struct{ err error }

func (e errStop) Error() string { return e.err.Error() }

// listAll calls fn, from one goroutine, for what the scans find, one scan after
// the other: the listing is in order. Those whose turn comes next read ahead.
func listAll(ctx context.Context, scans []*scan, fn func(blob.Info) error) error {
	group, ctx := errgroup.WithContext(ctx)
	turns := make(chan chan []blob.Info, listers-1)
	group.Go(func() error {
		defer close(turns)
		for _, s := range scans {
			pages := make(chan []blob.Info, pagesAhead)
			select {
			case turns <- pages:
			case <-ctx.Done():
				return ctx.Err()
			}
			group.Go(func() error {
				defer close(pages)
				return s.run(ctx, pages)
			})
		}
		return nil
	})
	group.Go(func() error {
		for pages := range turns {
			for page := range pages {
				for _, info := range page {
					if err := fn(info); err != nil {
						return errStop{err}
					}
				}
			}
		}
		return nil
	})
	err := group.Wait()
	var stop errStop
	if errors.As(err, &stop) {
		return stop.err
	}
	return err
}
