// Package gdb speaks the remote protocol of GDB with QEMU over an open connection, as
// far as it takes to have a machine's processors stand still. The protocol is described
// in GDB's manual, appendix "GDB Remote Serial Protocol".
package gdb

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

const (
	// maxPacket is the size of the longest packet that is read, in bytes. QEMU's have
	// 4 KiB at most.
	maxPacket = 8 << 10
	// interrupt, outside of a packet, stops the machine.
	interrupt = 0x03
)

// What QEMU calls registers of an amd64 processor, in hexadecimal.
const (
	instructionPointer = "10"
	flags              = "11"
)

// interrupts is the bit of the flags that lets interrupts come.
const interrupts = 1 << 9

// loop is the machine code for a jump to itself.
const loop = "ebfe"

// A Client is one connection to a machine.
type Client struct {
	connection io.ReadWriter
	reader     *bufio.Reader
}

// New returns a client for a machine that runs.
func New(connection io.ReadWriter) *Client {
	return &Client{connection, bufio.NewReader(connection)}
}

// Freeze has every processor of an amd64 machine stand still for good: it jumps to
// where it is, with interrupts off. The machine's clocks and devices go on.
func (c *Client) Freeze() error {
	if err := c.freeze(); err != nil {
		return fmt.Errorf("freeze a machine: %w", err)
	}
	return nil
}

func (c *Client) freeze() error {
	if _, err := c.connection.Write([]byte{interrupt}); err != nil {
		return err
	}
	switch stopped, err := c.receive(); {
	case err != nil:
		return err
	case !strings.HasPrefix(stopped, "T"):
		return fmt.Errorf("it isn't stopped but says %q", stopped)
	}
	// QEMU has packets for single registers only for those who know its description of
	// them.
	if _, err := c.ask("qXfer:features:read:target.xml:0,100"); err != nil {
		return err
	}
	processors, err := c.processors()
	if err != nil {
		return err
	}
	for _, processor := range processors {
		if err := c.hold(processor); err != nil {
			return fmt.Errorf("processor %s: %w", processor, err)
		}
	}
	// The answer comes when it stops again.
	return c.send("c")
}

// processors lists the processors, by the names that the protocol has for them.
func (c *Client) processors() ([]string, error) {
	var all []string
	for question := "qfThreadInfo"; ; question = "qsThreadInfo" {
		answer, err := c.ask(question)
		if err != nil {
			return nil, err
		}
		names, more := strings.CutPrefix(answer, "m")
		switch {
		case more:
			all = append(all, strings.Split(names, ",")...)
		case answer != "l":
			return nil, fmt.Errorf("to %s it says %q", question, answer)
		case len(all) == 0:
			return nil, errors.New("it has no processor")
		default:
			return all, nil
		}
	}
}

// hold has a processor, once it goes on, stay where it is.
func (c *Client) hold(processor string) error {
	if err := c.do("Hg" + processor); err != nil {
		return err
	}
	at, err := c.register(instructionPointer, 8)
	if err != nil {
		return err
	}
	state, err := c.register(flags, 4)
	if err != nil {
		return err
	}
	if err := c.do(fmt.Sprintf("M%x,%x:%s", at, len(loop)/2, loop)); err != nil {
		return err
	}
	off := make([]byte, 4)
	for i := range off {
		off[i] = byte((state &^ interrupts) >> (8 * i))
	}
	return c.do("P" + flags + "=" + hex.EncodeToString(off))
}

// register reads a register of so many bytes. The lowest comes first.
func (c *Client) register(name string, size int) (uint64, error) {
	answer, err := c.ask("p" + name)
	if err != nil {
		return 0, err
	}
	bytes, err := hex.DecodeString(answer)
	if err != nil || len(bytes) != size {
		return 0, fmt.Errorf("as its register %s it gives %q, not %d bytes", name, answer, size)
	}
	var value uint64
	for i, b := range bytes {
		value |= uint64(b) << (8 * i)
	}
	return value, nil
}

// do has the machine do what it says no more than OK to.
func (c *Client) do(command string) error {
	switch answer, err := c.ask(command); {
	case err != nil:
		return err
	case answer != "OK":
		return fmt.Errorf("to %s it says %q", command, answer)
	}
	return nil
}

// ask sends a packet and returns the content of the one that comes back.
func (c *Client) ask(question string) (string, error) {
	if err := c.send(question); err != nil {
		return "", err
	}
	return c.receive()
}

// checksum is what ends a packet with this content.
func checksum(content string) byte {
	var sum byte
	for i := range len(content) {
		sum += content[i]
	}
	return sum
}

// send sends a packet, whose content needs no escapes, and waits until QEMU has it.
func (c *Client) send(content string) error {
	if _, err := fmt.Fprintf(c.connection, "$%s#%02x", content, checksum(content)); err != nil {
		return err
	}
	switch confirmed, err := c.reader.ReadByte(); {
	case err != nil:
		return err
	case confirmed != '+':
		return fmt.Errorf("it answers %s by %q, not by +", content, confirmed)
	}
	return nil
}

// receive returns the next packet's content, escapes as they are, and confirms it.
func (c *Client) receive() (string, error) {
	switch begin, err := c.reader.ReadByte(); {
	case err != nil:
		return "", err
	case begin != '$':
		return "", fmt.Errorf("a packet begins with %q", begin)
	}
	var content strings.Builder
	for {
		b, err := c.reader.ReadByte()
		if err != nil {
			return "", err
		}
		if b == '#' {
			break
		}
		if content.Len() == maxPacket {
			return "", fmt.Errorf("a packet has more than %d bytes", maxPacket)
		}
		content.WriteByte(b)
	}
	digits := make([]byte, 2)
	if _, err := io.ReadFull(c.reader, digits); err != nil {
		return "", err
	}
	if sum, err := strconv.ParseUint(string(digits), 16, 8); err != nil || byte(sum) != checksum(content.String()) {
		return "", fmt.Errorf("a packet that ends with %q isn't whole", digits)
	}
	_, err := c.connection.Write([]byte{'+'})
	return content.String(), err
}
