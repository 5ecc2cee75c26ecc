package daemon

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"time"

	"powercloud.unidatum.com/go/node/network"
)

// settle is how long the addresses must have stayed the same before they are
// shown: at the start one comes after the other.
const settle = 3 * time.Second

// showBanner shows the console's message, and again when the addresses have
// changed.
func showBanner(ctx context.Context, c Config, state func() (network.State, <-chan struct{})) error {
	var shown []netip.Addr
	for first := true; ; {
		current, changed := state()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
			continue
		case <-time.After(settle):
		}
		if addresses := current.Addresses(); first || !slices.Equal(addresses, shown) {
			shown, first = addresses, false
			if _, err := io.WriteString(c.Console, banner(c.Version, addresses)); err != nil {
				return fmt.Errorf("write to the console: %w", err)
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// banner is what people read on a console: which software this is, where the
// machine can be reached, and what it waits for. Until nodes can be enrolled it
// is the same for all.
func banner(version string, addresses []netip.Addr) string {
	where := "no address yet"
	if len(addresses) > 0 {
		texts := make([]string, 0, len(addresses))
		for _, a := range addresses {
			texts = append(texts, a.String())
		}
		where = strings.Join(texts, ", ")
	}
	return fmt.Sprintf("\nPowerCloud %s\naddresses: %s\nThis node is blank: it belongs to no cluster and serves nothing yet.\n\n", version, where)
}
