package join

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"powercloud.unidatum.com/go/cluster/joinbundle"
	"powercloud.unidatum.com/go/node/network"
	"powercloud.unidatum.com/go/sys/fwcfg"
	"powercloud.unidatum.com/go/sys/metadata"
	"powercloud.unidatum.com/go/sys/smbios"
)

const (
	// firmwareFile is the name of QEMU's file: -fw_cfg name=opt/powercloud/join,file=...
	firmwareFile = "opt/powercloud/join"
	// longestWait is for how long a machine in a cloud waits for an address before it
	// asks the metadata service all the same.
	longestWait = time.Minute
)

// Machine is the machine that a node runs on.
type Machine struct {
	// Sysfs is where the file system of that name is mounted; /sys when "".
	Sysfs string
	// Network returns what is known of the network, and a channel that is closed when
	// that has changed.
	Network func() (network.State, <-chan struct{})
	Log     *slog.Logger
	// Dial connects to metadata services; a [net.Dialer] when nil.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// After waits; [time.After] when nil.
	After func(time.Duration) <-chan time.Time
}

// Sources returns where this machine can have a bundle.
func (m Machine) Sources() Sources {
	m.Sysfs = cmp.Or(m.Sysfs, "/sys")
	if m.After == nil {
		m.After = time.After
	}
	return Sources{
		// One byte more than a bundle has shows that it has too many.
		Firmware: func() ([]byte, error) { return fwcfg.Read(m.Sysfs, firmwareFile, joinbundle.MaxSize+1) },
		Cloud: func() (smbios.Cloud, error) {
			strings, err := smbios.Read(m.Sysfs)
			return strings.Cloud(), err
		},
		Connected: m.connected,
		UserData:  m.userData,
	}
}

// connected waits until the machine has an address, for a minute at most.
func (m Machine) connected(ctx context.Context) error {
	enough := m.After(longestWait)
	for {
		state, changed := m.Network()
		if len(state.Addresses()) > 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		case <-enough:
			m.Log.Warn("no address yet; asking the metadata service all the same", "waited", longestWait)
			return nil
		}
	}
}

// userData reads the user data of a cloud.
func (m Machine) userData(ctx context.Context, cloud smbios.Cloud) ([]byte, error) {
	var service metadata.Service
	switch cloud {
	case smbios.AWS:
		service = metadata.AWS()
	case smbios.GoogleCloud:
		service = metadata.GoogleCloud()
	case smbios.Azure:
		service = metadata.Azure()
	default:
		return nil, fmt.Errorf("no metadata service is known of the cloud %q", string(cloud))
	}
	reader := metadata.Reader{Limit: joinbundle.MaxSize + 1, Log: m.Log, Dial: m.Dial, After: m.After}
	return reader.UserData(ctx, service)
}
