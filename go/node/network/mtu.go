package network

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"powercloud.unidatum.com/go/sys/atomicfile"
	"powercloud.unidatum.com/go/sys/bounded"
)

// maxMTU is the largest MTU that an interface can have, in bytes.
const maxMTU = 1<<16 - 1

// setMTU sets the MTU that a server wants, in bytes, 0 for none. One that is too
// small for IPv6 would switch that off: it becomes the IPv4 routes', and is
// returned.
func (d *device) setMTU(mtu int) (routeMTU int) {
	if mtu == 0 {
		d.restoreMTU()
		return 0
	}
	if mtu < leastMTU6 {
		d.restoreMTU()
		return mtu
	}
	d.changeMTU(mtu)
	return 0
}

func (d *device) restoreMTU() { d.changeMTU(d.ownMTU) }

func (d *device) changeMTU(mtu int) {
	d.mu.Lock()
	current := d.last.MTU
	d.mu.Unlock()
	if mtu == current {
		return
	}
	if mtu != d.ownMTU {
		d.noteMTU()
	}
	if err := d.table.SetMTU(d.index, mtu); err != nil {
		// More than the device can do, for instance.
		d.log.Warn("the interface keeps its MTU", "mtu", current, "err", err)
		return
	}
	d.mu.Lock()
	d.last.MTU = mtu
	d.mu.Unlock()
	d.log.Info("MTU", "mtu", mtu)
	if mtu == d.ownMTU {
		d.network.forgetMTU(d.index)
	}
}

// mtuFile is where the MTU that an interface has by itself is noted while a lease's is
// set. The kernel gives no index twice until the machine restarts.
func (n *Network) mtuFile(index int) string {
	return filepath.Join(n.config.RunFolder, fmt.Sprintf("mtu-%d", index))
}

// noteMTU notes the interface's own MTU for a pcd that is started again: the kernel
// knows only the one that is set.
func (d *device) noteMTU() {
	file := d.network.mtuFile(d.index)
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if err == nil {
		err = atomicfile.Write(file, []byte(strconv.Itoa(d.ownMTU)+"\n"), 0o644)
	}
	if err != nil {
		d.log.Warn("the interface's own MTU is forgotten when pcd restarts", "err", err)
	}
}

// recallMTU returns an interface's own MTU: the one that a pcd before has noted, or
// else the one that it has.
func (n *Network) recallMTU(index, current int) int {
	content, err := bounded.ReadFile(n.mtuFile(index), 16)
	if errors.Is(err, fs.ErrNotExist) {
		return current
	}
	if err == nil {
		var noted int
		if noted, err = strconv.Atoi(strings.TrimSpace(string(content))); err == nil && noted > 0 && noted <= maxMTU {
			return noted
		}
	}
	n.config.Log.Warn("an interface's own MTU isn't known any more", "index", index, "content", string(content), "err", err)
	return current
}

// forgetMTU removes what was noted of an interface that has its own MTU, or is gone.
func (n *Network) forgetMTU(index int) {
	if err := os.Remove(n.mtuFile(index)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		n.config.Log.Warn("what was noted of an interface stays", "err", err)
	}
}
