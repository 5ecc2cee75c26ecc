package repair

import (
	"context"
	"fmt"

	"powercloud.unidatum.com/go/blob"
)

// examination is blob.Healer.Inspect or blob.Healer.Heal.
type examination func(blob.Healer, context.Context, blob.HealOptions) (blob.Health, error)

// examine has the locations that keep blobs in pieces look at them, or make them
// whole.
func (w *work) examine(ctx context.Context, examine examination) error {
	options := blob.HealOptions{Verify: w.options.Verify, Expect: w.expect, Done: w.done}
	for i, location := range w.repo.Set.Locations() {
		healer, ok := location.(blob.Healer)
		if !ok {
			continue
		}
		health, err := examine(healer, ctx, options)
		if ctxErr := ctx.Err(); ctxErr != nil {
			return ctxErr
		}
		if err != nil {
			// The survey meets the reason too, if it is one for all blobs.
			health.Parts = append(health.Parts, blob.PartHealth{Err: err})
		}
		w.health[i] = health
	}
	return nil
}

// describeHealth adds to the row of a location what was found of the pieces there.
func (w *work) describeHealth(i int, row *LocationReport) {
	health := w.health[i]
	row.Missing += health.Missing
	row.Stale += health.Stale
	row.Corrupt += health.Corrupt
	row.Repaired += health.Repaired
	row.Parts = health.Parts
	for _, part := range health.Parts {
		if part.Err == nil || row.PartErr != nil {
			continue
		}
		if row.PartErr = part.Err; part.Part != "" {
			row.PartErr = fmt.Errorf("%s: %w", part.Part, part.Err)
		}
	}
}
