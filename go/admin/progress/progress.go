// Package progress shows how far long work has come, on a terminal.
package progress

import (
	"io"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
)

// redraw is how often a bar is drawn at most.
const redraw = 100 * time.Millisecond

// Unit says what a bar counts.
type Unit int

// The units.
const (
	Bytes Unit = iota
	Items
)

// Bar is a progress bar, or nothing when output isn't shown to a person. Its
// methods may be called from several goroutines at once.
type Bar struct {
	mu    sync.Mutex
	bar   *progressbar.ProgressBar // nil when nothing is shown
	max   int64
	done  int64
	shown int64
	end   bool
}

// New returns a bar that draws on w, with a word for the work, or one that
// draws nothing.
func New(w io.Writer, show bool, work string, unit Unit) *Bar {
	if !show {
		return &Bar{}
	}
	options := []progressbar.Option{
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription(work),
		progressbar.OptionSetWidth(24),
		progressbar.OptionThrottle(redraw),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionShowCount(),
		progressbar.OptionUseANSICodes(true),
		// No goroutine of its own: it would outlive the work.
		progressbar.OptionSetSpinnerChangeInterval(0),
	}
	if unit == Bytes {
		options = append(options, progressbar.OptionShowBytes(true), progressbar.OptionUseIECUnits(true))
	}
	return &Bar{bar: progressbar.NewOptions64(1, options...)}
}

// Expect adds to the work that is known to lie ahead.
func (b *Bar) Expect(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.max += n
	b.draw()
}

// Done adds to the work that is done.
func (b *Bar) Done(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done += n
	b.draw()
}

// draw shows the state. The library takes a full bar for the end of all work, so
// the last unit is held back until more is expected.
func (b *Bar) draw() {
	if b.bar == nil || b.end || b.max == 0 {
		return
	}
	if b.bar.GetMax64() != b.max {
		b.bar.ChangeMax64(b.max)
	}
	if n := min(b.done, b.max-1) - b.shown; n > 0 {
		b.shown += n
		// The only errors are those of writing to the terminal.
		_ = b.bar.Add64(n)
	}
}

// Print removes the bar from the screen, calls print, which may write to the
// same terminal, and goes on. One call of print runs at a time.
func (b *Bar) Print(print func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bar != nil && !b.end {
		_ = b.bar.Clear()
	}
	print()
}

// Close removes the bar from the screen for good. Closing again does nothing.
func (b *Bar) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bar == nil || b.end {
		return
	}
	b.end = true
	_ = b.bar.Clear()
	_ = b.bar.Exit()
}

// Total is a view of a bar for work whose amount is known beforehand: what the
// parts of the work expect is already counted.
type Total struct{ bar *Bar }

// Total announces the whole amount of work and returns a view that takes no
// further announcements.
func (b *Bar) Total(n int64) Total {
	b.Expect(n)
	return Total{b}
}

// Expect does nothing.
func (t Total) Expect(int64) {}

// Done adds to the work that is done.
func (t Total) Done(n int64) { t.bar.Done(n) }
