package pcctl

import (
	"io"
	"net"
	"sync"
	"testing"
)

// cut is where a cable is cut.
type cut int

const (
	// before is before a connection is made.
	before cut = iota
	// answerLost is after the other end has answered and before the answer has arrived.
	answerLost
)

// cable is between pcctl and a node. It is cut at one of the connections, and mended by
// setting at to 0.
type cable struct {
	listener net.Listener
	to       string

	mu sync.Mutex
	// at is the number of the connection, from 1; it and all later ones don't get
	// through. made is how many there were.
	at, made int
	how      cut
	// onCut is called when that happens.
	onCut func()
}

// newCable returns a cable to an address.
func newCable(t *testing.T, to string) *cable {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{listener: listener, to: to}
	var carrying sync.WaitGroup
	carrying.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			carrying.Go(func() { c.carry(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		carrying.Wait()
	})
	return c
}

// cutAt cuts the cable at a connection; 0 mends it.
func (c *cable) cutAt(connection int, how cut, onCut func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.how, c.made, c.onCut = connection, how, 0, onCut
}

// count returns how many connections there were since it was cut or mended.
func (c *cable) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made
}

func (c *cable) carry(near net.Conn) {
	defer near.Close()
	c.mu.Lock()
	c.made++
	dead := c.at > 0 && (c.made > c.at || c.made == c.at && c.how == before)
	loses := c.at > 0 && c.made == c.at && c.how == answerLost
	onCut := c.onCut
	c.mu.Unlock()
	if dead {
		if onCut != nil {
			onCut()
		}
		return
	}
	far, err := net.Dial("tcp", c.to)
	if err != nil {
		return
	}
	defer far.Close()
	asked := make(chan struct{})
	var carrying sync.WaitGroup
	carrying.Go(func() {
		defer far.Close()
		_ = records(far, near, asked)
	})
	carrying.Go(func() {
		defer near.Close()
		buffer := make([]byte, 16<<10)
		for {
			n, err := far.Read(buffer)
			select {
			case <-asked:
				if loses {
					if onCut != nil {
						onCut()
					}
					return
				}
			default:
			}
			if _, writeErr := near.Write(buffer[:n]); err != nil || writeErr != nil {
				return
			}
		}
	})
	carrying.Wait()
}

// records carries TLS records, and closes asked when the second one that is encrypted
// goes by. With a node that is no member, the first is the end of the handshake, and
// the second a request.
func records(to io.Writer, from io.Reader, asked chan<- struct{}) error {
	const applicationData = 23
	encrypted := 0
	for {
		head := make([]byte, 5)
		if _, err := io.ReadFull(from, head); err != nil {
			return err
		}
		body := make([]byte, int(head[3])<<8|int(head[4]))
		if _, err := io.ReadFull(from, body); err != nil {
			return err
		}
		if head[0] == applicationData {
			encrypted++
			if encrypted == 2 {
				close(asked)
			}
		}
		if _, err := to.Write(append(head, body...)); err != nil {
			return err
		}
	}
}
