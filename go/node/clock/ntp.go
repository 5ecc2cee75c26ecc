package clock

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/beevik/ntp"
)

const (
	// samples is how often a server is asked in one round. The quickest answer
	// counts: its way there and back hides the least.
	samples = 4
	// answerTimeout is how long one answer is awaited.
	answerTimeout = 2 * time.Second
	// leastError is added for what a measurement can't see of itself.
	leastError = 10 * time.Millisecond
	// mostError is how inexact an answer may be to count at all.
	mostError = 5 * time.Second
)

// queryNTP asks one server several times: a host's name or address, with a port
// if it isn't 123.
func queryNTP(ctx context.Context, server string) (Measurement, error) {
	best := Measurement{Source: server, Error: mostError + 1}
	var failure error
	for range samples {
		m, err := queryOnce(ctx, server)
		if err != nil {
			failure = err
			if ctx.Err() != nil || best.Error > mostError {
				// The first answer tells whether it is worth going on.
				break
			}
			continue
		}
		if m.Error < best.Error {
			best = m
		}
	}
	if best.Error > mostError {
		if failure == nil {
			failure = fmt.Errorf("its answer may be wrong by more than %v", mostError)
		}
		return Measurement{}, fmt.Errorf("ask the time server %s: %w", server, failure)
	}
	return best, nil
}

func queryOnce(ctx context.Context, server string) (Measurement, error) {
	dialer := func(_, remote string) (net.Conn, error) {
		// The network gives addresses without names for most servers; names are
		// looked up anew each time, so that a pool spreads its load.
		return (&net.Dialer{Timeout: answerTimeout}).DialContext(ctx, "udp", remote)
	}
	r, err := ntp.QueryWithOptions(server, ntp.QueryOptions{Timeout: answerTimeout, Dialer: dialer})
	if err != nil {
		return Measurement{}, err
	}
	if err := r.Validate(); err != nil {
		return Measurement{}, err
	}
	return Measurement{Source: server, Offset: r.ClockOffset, Error: r.RootDistance.Abs() + leastError}, nil
}
