package notify

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// PingInterval is how often pcd says that it is alive.
	PingInterval = 5 * time.Second
	// FrozenAfter is after how long without a word PID 1 takes pcd for frozen.
	FrozenAfter = 30 * time.Second
	// FD is the file descriptor that pcd inherits.
	FD = 3
	// Variable is the environment variable that says so, with the value Value.
	Variable = "POWERCLOUD_NOTIFY"
	// Value is what Variable is set to.
	Value = "3"
	// sendTimeout bounds how long a message may wait for a receiver that
	// doesn't read.
	sendTimeout = 5 * time.Second
)

// Conn is one end. Its methods may be called from several goroutines at once.
type Conn struct {
	socket *net.UnixConn
}

// Pair returns PID 1's end, and pcd's as a file for it to inherit. Close the
// file once pcd has it: the end of pcd is then the end of the connection.
func Pair() (*Conn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("create the sockets between PID 1 and pcd: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "notify"), os.NewFile(uintptr(fds[1]), "notify")
	c, err := FromFile(ours)
	if err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return c, theirs, nil
}

// Inherited returns pcd's end, or nil when pcd wasn't started by PID 1 of the
// node. It takes the variable out of the environment, so that no child of pcd
// takes itself for it.
func Inherited() (*Conn, error) {
	value, ok := os.LookupEnv(Variable)
	if !ok {
		return nil, nil
	}
	if err := os.Unsetenv(Variable); err != nil {
		return nil, fmt.Errorf("unset %s: %w", Variable, err)
	}
	if value != Value {
		return nil, fmt.Errorf("%s=%q: it must be %s", Variable, value, Value)
	}
	unix.CloseOnExec(FD)
	return FromFile(os.NewFile(FD, "notify"))
}

// FromFile makes a Conn of a socket and closes the file.
func FromFile(f *os.File) (*Conn, error) {
	conn, err := net.FileConn(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("use the socket between PID 1 and pcd: %w", err)
	}
	socket, ok := conn.(*net.UnixConn)
	if !ok || socket.LocalAddr().Network() != "unixpacket" {
		return nil, errors.Join(errors.New("the descriptor between PID 1 and pcd is no socket of packets"), conn.Close())
	}
	return &Conn{socket: socket}, nil
}

// Send sends a message. It doesn't wait longer than 5 s for room.
func (c *Conn) Send(m Message) error {
	err := c.socket.SetWriteDeadline(time.Now().Add(sendTimeout))
	if err == nil {
		_, err = c.socket.Write(m.Marshal())
	}
	if err != nil {
		return fmt.Errorf("send %v: %w", m.Kind, err)
	}
	return nil
}

// Receive waits for the next message. Its error wraps ErrMalformed when
// something else arrived, after which the next call goes on; any other error is
// the end of the connection.
func (c *Conn) Receive() (Message, error) {
	// One byte more, so that what is too long isn't taken for what fits.
	b := make([]byte, MaxSize+1)
	n, err := c.socket.Read(b)
	if err != nil {
		return Message{}, err
	}
	return Parse(b[:n])
}

// Close ends the connection, and a Receive that waits.
func (c *Conn) Close() error { return c.socket.Close() }
