package machine

import (
	"encoding/binary"
	"io"
	"os"
	"testing"
)

// plugged is a card of the test's own.
func plugged(t *testing.T, n *Network) *os.File {
	t.Helper()
	card, err := n.plug()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = card.Close() }) // It may be closed already.
	return card
}

func send(t *testing.T, card *os.File, frame string) {
	t.Helper()
	if _, err := card.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)); err != nil {
		t.Fatal(err)
	}
}

// expect reads a frame.
func expect(t *testing.T, card *os.File, want string) {
	t.Helper()
	header := make([]byte, 4)
	if _, err := io.ReadFull(card, header); err != nil {
		t.Fatal(err)
	}
	frame := make([]byte, binary.BigEndian.Uint32(header))
	if _, err := io.ReadFull(card, frame); err != nil || string(frame) != want {
		t.Errorf("got %q, %v, want %q", frame, err, want)
	}
}

func TestNetwork(t *testing.T) {
	n := NewNetwork(t)
	one, two, three := plugged(t, n), plugged(t, n), plugged(t, n)
	send(t, one, "from one")
	expect(t, two, "from one")
	expect(t, three, "from one")
	send(t, two, "from two")
	// Nobody gets back what he sent.
	expect(t, one, "from two")
	expect(t, three, "from two")

	// A card that says it sends more than any frame has is unplugged; the
	// others are not.
	if _, err := three.Write([]byte{0xff, 0, 0, 0}); err != nil {
		t.Fatal(err)
	}
	if _, err := three.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("it was not unplugged: %v", err)
	}
	send(t, one, "still there")
	expect(t, two, "still there")
}

// TestNetworkLosesFrames has a card that reads nothing: it must hold up nobody.
func TestNetworkLosesFrames(t *testing.T) {
	n := NewNetwork(t)
	one, two := plugged(t, n), plugged(t, n)
	plugged(t, n)
	frame := string(make([]byte, 60000))
	for range maxQueued * 2 {
		send(t, one, frame)
		expect(t, two, frame)
	}
}
