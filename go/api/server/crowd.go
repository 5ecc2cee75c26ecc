package server

import (
	"container/list"
	"net"
	"net/netip"
	"sync"
)

// crowd bounds how many connections there are, in all and from one source, so that
// whoever floods a node pushes out connections of their own: one too many ends the
// oldest of the source that has the most.
type crowd struct {
	max, each int

	mu      sync.Mutex
	sources map[string]*list.List // of member, the oldest first
	places  map[net.Conn]place
	arrived uint64
}

// member is a connection, and how many came before.
type member struct {
	conn   net.Conn
	number uint64
}

// place is where a crowd has a connection.
type place struct {
	source  string
	element *list.Element
}

func newCrowd(max, each int) *crowd {
	return &crowd{max: max, each: each, sources: make(map[string]*list.List), places: make(map[net.Conn]place)}
}

// add adds a connection of a source unless it is there, and closes one if that is one
// too many.
func (c *crowd) add(conn net.Conn, source string) {
	if victim := c.insert(conn, source); victim != nil {
		_ = victim.Close()
	}
}

func (c *crowd) insert(conn net.Conn, source string) (victim net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.places[conn]; ok {
		return nil
	}
	own := c.sources[source]
	if own == nil {
		own = list.New()
		c.sources[source] = own
	}
	c.arrived++
	c.places[conn] = place{source, own.PushBack(member{conn, c.arrived})}
	switch {
	case own.Len() > c.each:
		victim = oldest(own).conn
	case len(c.places) > c.max:
		victim = oldest(c.largest()).conn
	default:
		return nil
	}
	c.drop(victim)
	return victim
}

func oldest(own *list.List) member { return own.Front().Value.(member) }

// largest returns the connections of the source that has the most, of several the one
// with the oldest: so a newcomer has the longest time to ask what it wants.
func (c *crowd) largest() *list.List {
	var largest *list.List
	for _, own := range c.sources {
		if largest == nil || own.Len() > largest.Len() ||
			own.Len() == largest.Len() && oldest(own).number < oldest(largest).number {
			largest = own
		}
	}
	return largest
}

// remove forgets a connection, and reports whether it was there.
func (c *crowd) remove(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.drop(conn)
}

func (c *crowd) drop(conn net.Conn) bool {
	at, ok := c.places[conn]
	if !ok {
		return false
	}
	delete(c.places, conn)
	own := c.sources[at.source]
	own.Remove(at.element)
	if own.Len() == 0 {
		delete(c.sources, at.source)
	}
	return true
}

// closeAll closes every connection.
func (c *crowd) closeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.places {
		_ = conn.Close()
	}
}

// network names where a connection from an address, with its port, comes from: an IPv4
// address, or the /64 that an IPv6 address is in, of which one machine can have all
// addresses.
func network(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	address := at.Addr().Unmap().WithZone("")
	if address.Is6() {
		prefix, err := address.Prefix(64)
		if err == nil {
			return prefix.String()
		}
	}
	return address.String()
}
