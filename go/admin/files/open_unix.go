//go:build unix

package files

import "golang.org/x/sys/unix"

// openPlain keeps open from following a link, and from waiting for a pipe.
const openPlain = unix.O_NOFOLLOW | unix.O_NONBLOCK
