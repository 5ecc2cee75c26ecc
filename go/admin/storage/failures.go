package storage

import (
	"errors"
	"fmt"
	"sync"

	"powercloud.unidatum.com/go/admin/command"
	"powercloud.unidatum.com/go/admin/progress"
)

// failures counts what went wrong with parts of a command that went on with
// the others, and prints each. It may be used by several goroutines at once.
type failures struct {
	group *group
	bar   *progress.Bar

	mu    sync.Mutex
	count int
}

// add prints an error and counts it. Joined errors count one by one.
func (f *failures) add(err error) {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) && fmt.Sprint(err) == fmt.Sprint(errors.Join(joined.Unwrap()...)) {
		for _, part := range joined.Unwrap() {
			f.add(part)
		}
		return
	}
	f.mu.Lock()
	f.count++
	f.mu.Unlock()
	f.bar.Print(func() { fmt.Fprintf(f.group.Env.Stderr, "pcctl: %s\n", command.Line(err.Error())) })
}
