package machine

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// Patience is how long the machines of one test have. The slowest takes a tenth of it
// where nothing else runs.
const Patience = 5 * time.Minute

// Patient returns a context of the test's that ends after [Patience].
func Patient(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), Patience, fmt.Errorf("%v were not enough", Patience))
	t.Cleanup(cancel)
	return ctx
}
