// Package namespace gives tests networks of their own: the test's process moves
// into a network namespace, as a node, and what it talks to lives in others.
// Nothing of the machine's own network is seen or changed.
package namespace

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// inside says that a process is in its namespace already.
const inside = "NAMESPACE_TEST_INSIDE"

// Main is a TestMain that runs the tests in a network namespace and a mount
// namespace of their own, by running the test's program again. As another user
// than root, and in a sandbox, that takes a user namespace as well. Where none is
// to be had, the tests run outside and Enter skips those that need it.
func Main(m *testing.M) {
	if os.Getenv(inside) != "" {
		os.Exit(m.Run())
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:   unix.CLONE_NEWUSER | unix.CLONE_NEWNET,
		Unshareflags: unix.CLONE_NEWNS,
		UidMappings:  []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings:  []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		os.Exit(0)
	case errors.As(err, &exit):
		os.Exit(max(exit.ExitCode(), 1))
	}
	fmt.Fprintln(os.Stderr, "no namespaces here:", err)
	os.Exit(m.Run())
}

// Enter skips a test outside of a namespace of its own.
func Enter(t testing.TB) {
	t.Helper()
	if os.Getenv(inside) == "" {
		t.Skip("this test needs network namespaces, which aren't allowed here")
	}
}

// Namespace is another network namespace than the test's.
type Namespace struct {
	handle netns.NsHandle
}

// New makes a namespace with nothing in it for the test's time.
func New(t testing.TB) *Namespace {
	t.Helper()
	Enter(t)
	made := make(chan error)
	n := &Namespace{}
	go func() {
		// The thread ends with this goroutine; the namespace lives on by the
		// handle.
		runtime.LockOSThread()
		var err error
		n.handle, err = netns.New()
		made <- err
	}()
	if err := <-made; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.handle.Close() })
	if err := n.Do(loopback); err != nil {
		t.Fatal(err)
	}
	return n
}

// Loopback has the test's own namespace reach itself.
func Loopback(t testing.TB) {
	t.Helper()
	Enter(t)
	if err := loopback(); err != nil {
		t.Fatal(err)
	}
}

func loopback() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(lo)
}

// Do runs a function inside. Sockets that it opens and programs that it starts
// stay there; goroutines that it starts don't.
func (n *Namespace) Do(run func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if err := netns.Set(n.handle); err != nil {
			done <- err
			return
		}
		done <- run()
	}()
	return <-done
}

// Cable connects an interface of the test's with one of a namespace's, which is
// switched on and gets addresses. Its end here is left as a node finds a network
// card. It returns what this end is.
func Cable(t testing.TB, name string, far *Namespace, farName string, addresses ...string) netlink.Link {
	t.Helper()
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: farName, PeerNamespace: netlink.NsFd(far.handle)}
	if err := netlink.LinkAdd(veth); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = netlink.LinkDel(veth) })
	Plug(t, far, farName, true)
	for _, address := range addresses {
		Address(t, far, farName, address)
	}
	near, err := netlink.LinkByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return near
}

// Plug switches an interface of a namespace on or off: the other end of its cable
// gains or loses its carrier.
func Plug(t testing.TB, n *Namespace, name string, on bool) {
	t.Helper()
	change := netlink.LinkSetUp
	if !on {
		change = netlink.LinkSetDown
	}
	if err := n.Do(func() error {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		return change(l)
	}); err != nil {
		t.Fatal(err)
	}
}

// Address gives an interface of a namespace an address, without a check for its
// being unique.
func Address(t testing.TB, n *Namespace, name, address string) {
	t.Helper()
	p := netip.MustParsePrefix(address)
	if err := n.Do(func() error {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		return netlink.AddrReplace(l, &netlink.Addr{
			IPNet: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())},
			Flags: unix.IFA_F_NODAD,
		})
	}); err != nil {
		t.Fatal(err)
	}
}
