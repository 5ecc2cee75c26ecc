package recovery

import (
	"strconv"
	"testing"
	"time"

	"powercloud.unidatum.com/tests/chrony"
	"powercloud.unidatum.com/tests/dhcp"
	"powercloud.unidatum.com/tests/machine"
	"powercloud.unidatum.com/tests/namespace"
)

// TestMain has the tests run in network namespaces of their own: see TestClock.
func TestMain(m *testing.M) { namespace.Main(m) }

// slack is how far a clock may be off that was just set by the network: little beside
// years.
const slack = 5 * time.Second

// TestClock gives a node a clock that is years ahead, and a network that names a time
// server: the kernel's clock is set.
func TestClock(t *testing.T) {
	config := sabotaged(t)
	network, servers := dhcp.Start(t, "--dhcp-option=option:ntp-server,"+dhcp.Server)
	chrony.Start(t, servers)
	config.Clock = time.Date(2029, 1, 2, 3, 4, 5, 0, time.UTC)
	config.Cards[0].Network = network

	ctx := machine.Patient(t)
	m := machine.Start(ctx, t, config)
	m.Expect(ctx, `msg="address by DHCP" svc=pcd interface=eth0 address=192\.0\.2\.100/24`)
	found := m.Expect(ctx, `msg="the clock is right" svc=pcd server=192\.0\.2\.1 offset=(\S+) `)
	offset, err := time.ParseDuration(found[1])
	if err != nil {
		t.Fatal(err)
	}
	// The clock went on while the machine started.
	late := time.Until(config.Clock)
	if off := (offset + late).Abs(); off > machine.Patience {
		t.Errorf("the clock was off by %v, and corrected by %v", -late, offset)
	}
	earliest := time.Now().Add(-slack)
	seconds, err := strconv.ParseInt(tell(t, m, "time"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	latest := time.Now().Add(slack)
	if clock := time.Unix(seconds, 0); clock.Before(earliest) || clock.After(latest) {
		t.Errorf("by the kernel's clock it is %v, want %v to %v", clock, earliest, latest)
	}
}
