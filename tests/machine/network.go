package machine

import (
	"bufio"
	"encoding/binary"
	"io"
	"os"
	"sync"
	"testing"
)

// A Network joins network cards of machines, and nothing else: what one sends,
// all others get. It is in this process, so that it clashes with none.
type Network struct {
	mutex sync.Mutex
	ports map[*port]bool
}

// port is where a card is plugged in.
type port struct {
	connection *os.File
	// frames wait here to be sent to the card, each with its length before
	// it. Where the card is too slow for them, they are lost, as on a wire.
	frames chan []byte
}

const (
	// maxFrame is the length of the longest Ethernet frame, in bytes; cards
	// that leave segmenting to others send more than fits on a wire.
	maxFrame  = 1 << 17
	maxQueued = 512
)

// NewNetwork makes a network that lasts as long as the test.
func NewNetwork(t testing.TB) *Network {
	n := &Network{ports: map[*port]bool{}}
	t.Cleanup(func() {
		n.mutex.Lock()
		defer n.mutex.Unlock()
		for p := range n.ports {
			_ = p.connection.Close() // Its reader then unplugs it.
		}
	})
	return n
}

// plug returns the other end of a new port, for QEMU: a stream of frames, each
// after its length in four bytes, most significant first.
func (n *Network) plug() (*os.File, error) {
	ours, theirs, err := socketPair("network")
	if err != nil {
		return nil, err
	}
	p := &port{connection: ours, frames: make(chan []byte, maxQueued)}
	n.mutex.Lock()
	n.ports[p] = true
	n.mutex.Unlock()
	go p.send()
	go n.receive(p)
	return theirs, nil
}

// send sends the frames that wait.
func (p *port) send() {
	for frame := range p.frames {
		if _, err := p.connection.Write(frame); err != nil {
			break // The machine is gone; receive sees that too.
		}
	}
	for range p.frames { // Until receive closes it.
	}
}

// receive hands on what the card sends, until it is unplugged.
func (n *Network) receive(p *port) {
	reader := bufio.NewReaderSize(p.connection, maxFrame)
	for {
		header := make([]byte, 4)
		if _, err := io.ReadFull(reader, header); err != nil {
			break
		}
		length := binary.BigEndian.Uint32(header)
		if length > maxFrame {
			break
		}
		frame := append(header, make([]byte, length)...)
		if _, err := io.ReadFull(reader, frame[4:]); err != nil {
			break
		}
		n.spread(p, frame)
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	delete(n.ports, p)
	close(p.frames)
	_ = p.connection.Close() // Nothing is left to be lost.
}

// spread hands a frame to every other port.
func (n *Network) spread(from *port, frame []byte) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for p := range n.ports {
		if p == from {
			continue
		}
		select {
		case p.frames <- frame:
		default:
		}
	}
}
