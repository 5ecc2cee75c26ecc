package notify

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestBytes(t *testing.T) {
	for _, c := range []struct {
		m    Message
		want string
	}{
		{Message{Ready, "v1"}, "PCN1\x01\x02v1"},
		{Message{Kind: Alive}, "PCN1\x02\x00"},
		{Message{Reboot, "a\nb\xffc"}, "PCN1\x03\x05a b c"},
	} {
		b := c.m.Marshal()
		if string(b) != c.want {
			t.Errorf("%v is %q, want %q", c.m, b, c.want)
		}
		if m, err := Parse(b); err != nil || m.Kind != c.m.Kind {
			t.Errorf("%q reads as %v, %v", b, m, err)
		}
	}
	long := Message{Stop, strings.Repeat("ä", 200)}.Marshal()
	if m, err := Parse(long); err != nil || m.Text != strings.Repeat("ä", 125) || len(long) != MaxSize {
		t.Errorf("a long text: %v, %v", m, err)
	}
}

func TestMalformed(t *testing.T) {
	for _, b := range []string{"", "PCN1", "PCN1\x01", "PCN2\x01\x00", "PCN1\x00\x00", "PCN1\x06\x00",
		"PCN1\x01\x01", "PCN1\x01\x00a", "PCN1\x01\x01\n", "PCN1\x01\x01\xff", "PCN1\x01\xff" + strings.Repeat("a", 255)} {
		if m, err := Parse([]byte(b)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q reads as %v, %v", b, m, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("PCN1\x01\x02v1"))
	f.Add([]byte("PCN1\x03\x00"))
	f.Add([]byte("PCN1\x05\x02\xc3\xa4"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Parse(b)
		if err != nil {
			return
		}
		if len(b) > MaxSize || !bytes.Equal(m.Marshal(), b) {
			t.Errorf("%q reads as %v, which is %q", b, m, m.Marshal())
		}
	})
}

func TestConn(t *testing.T) {
	ours, theirs, err := Pair()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ours.Close() }()
	other, err := FromFile(theirs)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Send(Message{Ready, "v1"}); err != nil {
		t.Fatal(err)
	}
	if m, err := ours.Receive(); err != nil || m != (Message{Ready, "v1"}) {
		t.Fatalf("received %v, %v", m, err)
	}
	// Garbage, too short and too long, is told from the end.
	for _, garbage := range []string{"x", string(Message{Ready, strings.Repeat("a", maxText)}.Marshal()) + "aaaa"} {
		if _, err := other.socket.Write([]byte(garbage)); err != nil {
			t.Fatal(err)
		}
		if _, err := ours.Receive(); !errors.Is(err, ErrMalformed) {
			t.Errorf("garbage was received as %v", err)
		}
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if m, err := ours.Receive(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v, %v", m, err)
	}
}

func TestInheritedWithoutPID1(t *testing.T) {
	// Set it first, so that the test's end restores what was there.
	t.Setenv(Variable, "")
	if err := os.Unsetenv(Variable); err != nil {
		t.Fatal(err)
	}
	if c, err := Inherited(); c != nil || err != nil {
		t.Errorf("Inherited returned %v, %v", c, err)
	}
	t.Setenv(Variable, "4")
	if _, err := Inherited(); err == nil {
		t.Error("a wrong value was taken")
	}
	if _, ok := os.LookupEnv(Variable); ok {
		t.Error("the variable is still there")
	}
}

func TestOtherDescriptors(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fds[1]) }()
	if _, err := FromFile(os.NewFile(uintptr(fds[0]), "stream")); err == nil {
		t.Error("a stream was taken")
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := FromFile(null); err == nil {
		t.Error("/dev/null was taken")
	}
}
