// Package notify is how pcd and PID 1 talk to each other: pcd says that it is
// ready and alive and asks for a reboot or for power-off; PID 1 asks it to stop.
//
// They share a pair of Unix sockets of type SOCK_SEQPACKET, so that a message is
// one packet, whole or not at all. PID 1 keeps one end; pcd inherits the other
// as file descriptor 3 and learns from the environment variable
// POWERCLOUD_NOTIFY=3 that it is there.
//
// A message is at most 256 bytes:
//
//	offset  size
//	0       4     magic "PCN1", whose digit is the protocol's version
//	4       1     kind
//	5       1     length of the text, 0 to 250
//	6             the text: UTF-8 without control characters
//
// Whoever receives something else drops it and says so in the log: the other
// side may be newer. A version that can't be understood by the one before gets
// another digit.
package notify

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	magic      = "PCN1"
	headerSize = len(magic) + 2
	// maxText is the longest text in bytes.
	maxText = 250
	// MaxSize is the size in bytes of the largest message.
	MaxSize = headerSize + maxText
)

// Kind is what a message says.
type Kind uint8

// The kinds, with the sender.
const (
	// Ready, from pcd: it has started, and its text is the version.
	Ready Kind = 1
	// Alive, from pcd: it works. It is sent at least every PingInterval, from
	// the start on.
	Alive Kind = 2
	// Reboot, from pcd: reboot the machine in good order. The text is why.
	Reboot Kind = 3
	// PowerOff, from pcd: power the machine off in good order. The text is why.
	PowerOff Kind = 4
	// Stop, from PID 1: end. The text is why.
	Stop Kind = 5
)

// String returns the kind's name.
func (k Kind) String() string {
	switch k {
	case Ready:
		return "ready"
	case Alive:
		return "alive"
	case Reboot:
		return "reboot"
	case PowerOff:
		return "power-off"
	case Stop:
		return "stop"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Message is what one side says to the other.
type Message struct {
	Kind Kind
	Text string
}

// ErrMalformed is wrapped by Parse's errors.
var ErrMalformed = errors.New("not a message between pcd and PID 1")

// Marshal returns the message as bytes. Of the text it takes as much as fits,
// and replaces what isn't allowed in it.
func (m Message) Marshal() []byte {
	text := clean(m.Text)
	b := make([]byte, 0, headerSize+len(text))
	b = append(b, magic...)
	b = append(b, byte(m.Kind), byte(len(text)))
	return append(b, text...)
}

// clean makes a text fit for a message.
func clean(text string) string {
	text = strings.Map(func(r rune) rune {
		if !allowed(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, " "))
	for len(text) > maxText {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return text
}

func allowed(r rune) bool { return !unicode.IsControl(r) && r != utf8.RuneError }

// Parse reads one message. Its error wraps ErrMalformed.
func Parse(b []byte) (Message, error) {
	if len(b) < headerSize || string(b[:len(magic)]) != magic {
		return Message{}, fmt.Errorf("%w: no header of version 1", ErrMalformed)
	}
	m := Message{Kind: Kind(b[len(magic)]), Text: string(b[headerSize:])}
	if m.Kind < Ready || m.Kind > Stop {
		return Message{}, fmt.Errorf("%w: unknown %v", ErrMalformed, m.Kind)
	}
	if size := int(b[len(magic)+1]); size > maxText || size != len(m.Text) {
		return Message{}, fmt.Errorf("%w: %d bytes of text instead of %d", ErrMalformed, len(m.Text), size)
	}
	if !utf8.ValidString(m.Text) || strings.ContainsFunc(m.Text, func(r rune) bool { return !allowed(r) }) {
		return Message{}, fmt.Errorf("%w: its text isn't plain", ErrMalformed)
	}
	return m, nil
}
