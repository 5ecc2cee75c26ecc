package network

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"powercloud.unidatum.com/go/sys/routerad"
	"powercloud.unidatum.com/go/sys/sysctl"
)

// The kernel has a route for each router and for each network that anybody on the
// link announces, for as long as they say, and no bound on their number: a stranger
// fills a small machine's memory within a minute. Whoever announces more than these
// within crowdTime isn't listened to for deafTime.
const (
	maxRouters  = 16
	maxNetworks = 64
	crowdTime   = time.Hour
	deafTime    = 10 * time.Minute
)

// acceptRouters is the kernel's parameter of an interface that has it listen to
// routers, with the values for that, even once the node forwards for its apps, and
// for not doing so.
const (
	acceptRouters = "accept_ra"
	listening     = "2"
	deaf          = "0"
)

// errCrowd says that more was announced than a link can have.
var errCrowd = errors.New("too many routers or networks are announced")

// crowd counts what was announced on a link.
type crowd struct {
	since    time.Time
	routers  map[netip.Addr]bool
	networks map[netip.Prefix]bool
}

// add takes an announcement, and tells whether that is too much.
func (c *crowd) add(a routerad.Advertisement, now time.Time) (tooMuch bool) {
	if c.routers == nil || now.Sub(c.since) >= crowdTime {
		*c = crowd{since: now, routers: map[netip.Addr]bool{}, networks: map[netip.Prefix]bool{}}
	}
	c.routers[a.Router] = true
	for _, p := range a.Networks {
		c.networks[p] = true
	}
	return len(c.routers) > maxRouters || len(c.networks) > maxNetworks
}

// runRouters listens to routers until ctx is done, and has the kernel do so as long,
// except for a while after too much was announced, or until the cable was moved.
func (d *device) runRouters(ctx context.Context) error {
	if err := d.awaitLinkLocal(ctx); err != nil {
		return err
	}
	for {
		// Before the first question: the answer is for the kernel too.
		d.setRouters(listening)
		err := d.listen(ctx)
		if ctx.Err() != nil {
			// What routers say goes on to count while pcd is started again.
			return ctx.Err()
		}
		d.setRouters(deaf)
		if !errors.Is(err, errCrowd) {
			return err
		}
		d.log.Warn("too many routers or networks are announced: routers aren't heeded for a while", "wait", deafTime)
		over := time.NewTimer(deafTime)
		select {
		case <-ctx.Done():
		case <-d.movedRouters:
		case <-over.C:
		}
		over.Stop()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// listen listens to routers until ctx is done or too much was announced, which is
// errCrowd.
func (d *device) listen(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var heard crowd
	err := routerad.Run(ctx, routerad.Options{Interface: d.name, Moved: d.movedRouters, Heard: func(a routerad.Advertisement) {
		if heard.add(a, time.Now()) {
			stop(errCrowd)
			return
		}
		d.hear(a)
	}})
	if cause := context.Cause(ctx); errors.Is(cause, errCrowd) {
		return cause
	}
	return err
}

// setRouters has the kernel listen to routers, or not.
func (d *device) setRouters(value string) {
	if err := sysctl.Set(d.network.config.SysctlRoot, d.parameter(acceptRouters), value); err != nil {
		d.log.Error("the kernel can't be told whether to heed routers", "err", err)
	}
}
