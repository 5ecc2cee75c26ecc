package daemon

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"time"

	"powercloud.unidatum.com/go/node/lifecycle"
	"powercloud.unidatum.com/go/node/network"
)

// settle is how long the addresses must have stayed the same before they are
// shown: at the start one comes after the other.
const settle = 3 * time.Second

// mostSettle is how long that takes at most: a link that comes and goes hides no code.
const mostSettle = 5 * settle

// console shows people what there is to know of the node, and again when that has
// changed.
type console struct {
	to      io.Writer
	version string
	network func() (network.State, <-chan struct{})
	notice  func() (lifecycle.Notice, <-chan struct{})
	// began is called once, when something has been shown.
	began func()

	shown     lifecycle.Notice
	addresses []netip.Addr
}

// run shows it until ctx is done.
func (c *console) run(ctx context.Context) error {
	var due time.Time
	for {
		notice, changed := c.notice()
		current, moved := c.network()
		addresses := current.Addresses()
		wait := time.Duration(0)
		if !slices.Equal(addresses, c.addresses) {
			wait = settle
		}
		if notice.Text == "" || notice == c.shown && wait == 0 {
			due = time.Time{}
		} else {
			if due.IsZero() {
				due = time.Now().Add(mostSettle)
			}
			wait = min(wait, max(time.Until(due), 0))
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-changed:
				continue
			case <-moved:
				continue
			case <-time.After(wait):
			}
			due = time.Time{}
			c.shown, c.addresses = notice, addresses
			if _, err := io.WriteString(c.to, c.banner()); err != nil {
				// The next try shows it again.
				c.shown = lifecycle.Notice{}
				return fmt.Errorf("write to the console: %w", err)
			}
			if c.began != nil {
				c.began()
				c.began = nil
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		case <-moved:
		}
	}
}

// banner is what people read on a console: which software this is, where the machine
// can be reached, and what it waits for.
func (c *console) banner() string {
	where := "no address yet"
	if len(c.addresses) > 0 {
		texts := make([]string, 0, len(c.addresses))
		for _, a := range c.addresses {
			texts = append(texts, a.String())
		}
		where = strings.Join(texts, ", ")
	}
	return fmt.Sprintf("\nPowerCloud %s\naddresses: %s\n%s\n", c.version, where, c.shown.Text)
}
