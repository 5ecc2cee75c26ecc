package supervisor

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// options let no time pass: each wait is over at once and is counted.
func options(waits *atomic.Int64) Options {
	return Options{
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		After: func(time.Duration) <-chan time.Time {
			waits.Add(1)
			c := make(chan time.Time, 1)
			c <- time.Time{}
			return c
		},
	}
}

func TestComponentsFailByThemselves(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	var waits atomic.Int64
	steady := 0
	failing := 0
	tree := New(options(&waits),
		Component{Name: "steady", Run: func(ctx context.Context) error {
			steady++
			<-ctx.Done()
			return ctx.Err()
		}},
		Component{Name: "failing", Run: func(context.Context) error {
			if failing++; failing == 5 {
				stop()
			}
			if failing == 2 {
				panic("a mistake")
			}
			return errors.New("broken")
		}},
		Component{Name: "once", Run: func(context.Context) error { return ErrDone }},
	)
	if err := tree.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Run returned %v", err)
	}
	if steady != 1 || failing != 5 || waits.Load() != 4 {
		t.Errorf("steady ran %d times, failing %d times with %d waits", steady, failing, waits.Load())
	}
	statuses := tree.Statuses()
	if s := statuses[2]; s.Starts != 1 || s.Running {
		t.Errorf("the component that was done: %+v", s)
	}
	if s := statuses[1]; s.Starts != 5 || s.LastError != "broken" {
		t.Errorf("the failing component: %+v", s)
	}
}

func TestPanicKeepsItsStack(t *testing.T) {
	err := run(t.Context(), Component{Name: "c", Run: func(context.Context) error { panic("a mistake") }})
	var p *PanicError
	if !errors.As(err, &p) || p.Value != "a mistake" || !strings.Contains(err.Error(), "supervisor_test.go") {
		t.Errorf("the panic became %v", err)
	}
}

func TestTreesNest(t *testing.T) {
	var waits atomic.Int64
	inner := New(options(&waits), Component{Name: "leaf", Run: func(context.Context) error { return ErrDone }})
	outer := New(options(&waits), Component{Name: "inner", Run: inner.Run})
	if err := outer.Run(t.Context()); !errors.Is(err, ErrDone) || waits.Load() != 0 {
		t.Errorf("Run returned %v after %d waits", err, waits.Load())
	}
}
