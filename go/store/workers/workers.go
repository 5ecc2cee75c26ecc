// Package workers runs a step for many items, several at once.
package workers

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// Each runs a step for each item, so many at once, by as many goroutines: one for
// every item would have each grow its stack anew. The first error ends the work and
// is returned, or else ctx's.
func Each[T any](ctx context.Context, atOnce int, items []T, step func(context.Context, T) error) error {
	var next atomic.Int64
	group, groupCtx := errgroup.WithContext(ctx)
	for range min(len(items), atOnce) {
		group.Go(func() error {
			for groupCtx.Err() == nil {
				i := next.Add(1) - 1
				if i >= int64(len(items)) {
					return nil
				}
				if err := step(groupCtx, items[i]); err != nil {
					return err
				}
			}
			return groupCtx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}
