// Package qmp speaks QEMU's machine protocol over an open connection: it sends
// commands and waits for events. The protocol is described in QEMU's
// docs/interop/qmp-spec. (The Go modules for it dial sockets by their names;
// here the connection is inherited, so that no name can clash or be left.)
package qmp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// maxMessage is the size of the longest message that is read, in bytes.
const maxMessage = 4 << 20

// maxEvents is how many events are kept for those who wait later.
const maxEvents = 4096

// An Event is something that happened in the machine.
type Event struct {
	// Name is such as "SHUTDOWN" or "DEVICE_DELETED".
	Name string
	// Data is the event's own JSON object, or empty.
	Data json.RawMessage
	// Time is when it came about, by this host's clock, to the microsecond.
	Time time.Time
}

// A Client is one connection to a machine. Its methods may be called from
// several goroutines.
type Client struct {
	connection io.ReadWriteCloser
	write      sync.Mutex

	mutex   sync.Mutex
	next    uint64
	answers map[uint64]chan message
	events  []Event
	changed chan struct{}
	err     error
}

// message is whatever QEMU sends.
type message struct {
	Greeting json.RawMessage `json:"QMP"`
	ID       *uint64         `json:"id"`
	Return   json.RawMessage `json:"return"`
	Error    *struct {
		Class       string `json:"class"`
		Description string `json:"desc"`
	} `json:"error"`
	Event     string          `json:"event"`
	Data      json.RawMessage `json:"data"`
	Timestamp timestamp       `json:"timestamp"`
}

// A timestamp is QEMU's for an event: since 1970.
type timestamp struct {
	Seconds      int64 `json:"seconds"`
	Microseconds int64 `json:"microseconds"`
}

func (t timestamp) time() time.Time {
	return time.Unix(t.Seconds, t.Microseconds*int64(time.Microsecond))
}

// New reads QEMU's greeting and makes the connection ready for commands.
// Closing the connection ends the client.
func New(ctx context.Context, connection io.ReadWriteCloser) (*Client, error) {
	c := &Client{connection: connection, answers: map[uint64]chan message{}, changed: make(chan struct{})}
	go c.receive()
	if err := c.Execute(ctx, "qmp_capabilities", nil, nil); err != nil {
		return nil, err
	}
	return c, nil
}

// Close closes the connection. Whoever waits gets an error.
func (c *Client) Close() error { return c.connection.Close() }

// receive reads messages until the connection ends.
func (c *Client) receive() {
	scanner := bufio.NewScanner(c.connection)
	scanner.Buffer(nil, maxMessage)
	err := io.EOF
	for scanner.Scan() {
		var m message
		if bad := json.Unmarshal(scanner.Bytes(), &m); bad != nil {
			err = fmt.Errorf("QEMU sent no JSON: %w", bad)
			break
		}
		c.dispatch(m)
	}
	if scanner.Err() != nil {
		err = scanner.Err()
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.err = fmt.Errorf("the connection to QEMU ended: %w", err)
	for _, answer := range c.answers {
		close(answer)
	}
	c.answers = nil
	c.wake()
}

// dispatch hands a message to whoever waits for it.
func (c *Client) dispatch(m message) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	switch {
	case m.Event != "":
		if len(c.events) == maxEvents {
			c.events = c.events[1:]
		}
		c.events = append(c.events, Event{m.Event, m.Data, m.Timestamp.time()})
		c.wake()
	case m.ID != nil && c.answers[*m.ID] != nil:
		c.answers[*m.ID] <- m
		delete(c.answers, *m.ID)
	}
}

// wake wakes everybody who waits for a change. The mutex is held.
func (c *Client) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// Execute runs a command, with its arguments unless they are nil, and stores
// what it returns in result unless that is nil.
func (c *Client) Execute(ctx context.Context, command string, arguments, result any) error {
	answer, err := c.send(command, arguments)
	if err != nil {
		return fmt.Errorf("tell QEMU %s: %w", command, err)
	}
	select {
	case m, ok := <-answer:
		switch {
		case !ok:
			return fmt.Errorf("tell QEMU %s: %w", command, c.failure())
		case m.Error != nil:
			return fmt.Errorf("tell QEMU %s: %s: %s", command, m.Error.Class, m.Error.Description)
		case result == nil:
			return nil
		}
		if err := json.Unmarshal(m.Return, result); err != nil {
			return fmt.Errorf("read what QEMU answers to %s: %w", command, err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("tell QEMU %s: %w", command, context.Cause(ctx))
	}
}

// send sends a command and returns where its answer comes.
func (c *Client) send(command string, arguments any) (chan message, error) {
	answer := make(chan message, 1)
	c.mutex.Lock()
	if c.err != nil {
		defer c.mutex.Unlock()
		return nil, c.err
	}
	id := c.next
	c.next++
	c.answers[id] = answer
	c.mutex.Unlock()
	request, err := json.Marshal(struct {
		Execute   string `json:"execute"`
		Arguments any    `json:"arguments,omitempty"`
		ID        uint64 `json:"id"`
	}{command, arguments, id})
	if err != nil {
		return nil, err
	}
	c.write.Lock()
	defer c.write.Unlock()
	_, err = c.connection.Write(append(request, '\n'))
	return answer, err
}

// failure is why the connection ended.
func (c *Client) failure() error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.err
}

// Wait returns the oldest event, not yet returned, for which match is true, and
// waits for one where there is none. Events that don't match are kept.
func (c *Client) Wait(ctx context.Context, match func(Event) bool) (Event, error) {
	for {
		c.mutex.Lock()
		for i, event := range c.events {
			if match(event) {
				c.events = append(c.events[:i:i], c.events[i+1:]...)
				c.mutex.Unlock()
				return event, nil
			}
		}
		changed, err := c.changed, c.err
		c.mutex.Unlock()
		if err != nil {
			return Event{}, fmt.Errorf("wait for an event: %w", err)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Event{}, fmt.Errorf("wait for an event: %w", context.Cause(ctx))
		}
	}
}

// Ended tells whether an error says that QEMU closed the connection.
func Ended(err error) bool { return errors.Is(err, io.EOF) }

// Named returns a match for [Client.Wait]: events of this name.
func Named(name string) func(Event) bool {
	return func(e Event) bool { return e.Name == name }
}
