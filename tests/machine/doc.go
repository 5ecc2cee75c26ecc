// Package machine runs virtual machines for tests: QEMU with a firmware, disks,
// network cards, a TPM and whatever else a [Config] names. A test starts one,
// reads its console, presses its buttons, pulls its cables, and finds it gone
// when the test ends, however it ends.
//
// QEMU, its firmware and swtpm come from locked Debian packages and use nothing
// of the machine that they run on. KVM is used only where it was seen to run
// the firmware; see [Accelerator].
//
// These variables of the environment change what happens to a test:
//
//	MACHINE_CONSOLE=1       writes every console to standard error as it comes
//	MACHINE_KEEP=FOLDER     keeps each machine's files below the folder
//	MACHINE_ACCELERATOR=A   "kvm" or "tcg" instead of what was found out
//	MACHINE_TOOLS=FOLDER    the folder that Bazel's //tools/vm:root makes, for `go test`
package machine
