//go:build linux

package ptrace

import "golang.org/x/sys/unix"

// auditArch is the architecture's name in a seccomp filter.
const auditArch = unix.AUDIT_ARCH_AARCH64

// legacyRules is empty: the architecture never had those calls.
func legacyRules() map[int]rule { return nil }
