package machine

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// A Network joins network cards of machines, and devices of this host that
// [Network.Tap] makes, and nothing else: what one sends, all others get. It is in
// this process, so that it clashes with none.
type Network struct {
	mutex sync.Mutex
	ports map[*port]bool
}

// port is where a card is plugged in.
type port struct {
	// connection carries frames, each with its length before it in four bytes,
	// most significant first, as QEMU has them; to and from a TAP, a frame is
	// what one call reads or writes, without its length.
	connection *os.File
	tap        bool
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

// plug returns the other end of a new port, for QEMU.
func (n *Network) plug() (*os.File, error) {
	ours, theirs, err := socketPair("network")
	if err != nil {
		return nil, err
	}
	n.attach(&port{connection: ours})
	return theirs, nil
}

// Tap adds a device to the network namespace of the calling thread, which lasts as
// long as the test: what is behind it talks to the machines. It takes the right to
// administer that namespace.
func (n *Network) Tap(name string) error {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("make the TAP device %s: %w", name, err)
	}
	request, err := unix.NewIfreq(name)
	if err == nil {
		request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err != nil {
		_ = unix.Close(fd) // Nothing was made.
		return fmt.Errorf("make the TAP device %s: %w", name, err)
	}
	n.attach(&port{connection: os.NewFile(uintptr(fd), name), tap: true})
	return nil
}

// attach has a new port send and receive.
func (n *Network) attach(p *port) {
	p.frames = make(chan []byte, maxQueued)
	n.mutex.Lock()
	n.ports[p] = true
	n.mutex.Unlock()
	go p.send()
	go n.receive(p)
}

// header is the length of a frame's length, in bytes.
const header = 4

// send sends the frames that wait.
func (p *port) send() {
	for frame := range p.frames {
		if p.tap {
			frame = frame[header:]
		}
		if _, err := p.connection.Write(frame); err != nil && !p.tap {
			break // The machine is gone; receive sees that too.
		}
		// A TAP that is switched off refuses frames, as a card without a cable.
	}
	for range p.frames { // Until receive closes it.
	}
}

// receive hands on what the card sends, until it is unplugged.
func (n *Network) receive(p *port) {
	next := fromStream(p.connection)
	if p.tap {
		next = fromTap(p.connection)
	}
	for {
		frame, err := next()
		if err != nil {
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

// fromStream returns what reads a frame with its length from QEMU.
func fromStream(connection io.Reader) func() ([]byte, error) {
	reader := bufio.NewReaderSize(connection, maxFrame)
	return func() ([]byte, error) {
		length := make([]byte, header)
		if _, err := io.ReadFull(reader, length); err != nil {
			return nil, err
		}
		size := binary.BigEndian.Uint32(length)
		if size > maxFrame {
			return nil, fmt.Errorf("a frame of %d bytes is longer than any", size)
		}
		frame := append(length, make([]byte, size)...)
		_, err := io.ReadFull(reader, frame[header:])
		return frame, err
	}
}

// fromTap returns what reads a frame from a TAP and puts its length before it.
func fromTap(device io.Reader) func() ([]byte, error) {
	buffer := make([]byte, header+maxFrame)
	return func() ([]byte, error) {
		size, err := device.Read(buffer[header:])
		binary.BigEndian.PutUint32(buffer, uint32(size))
		return slices.Clone(buffer[:header+size]), err
	}
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
