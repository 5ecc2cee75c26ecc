// Package kernel is what both sides of a kernel_test agree on: a Go test that
// runs as the first program of a kernel, in a virtual machine.
//
// The host's side, in the folder runner, packs the test and the files that it
// needs into an initramfs, boots the kernel, and prints and ends as the test
// does. The machine's side, in the folder init, starts the test and sends what
// comes of it through the second serial port, as package frame has it. Package
// host does the former for programs that are no tests as well.
package kernel

// TaskFile is where the machine's side finds its [Task], as JSON.
const TaskFile = "/task.json"

// Runfiles is the folder that has the test and its files in the machine.
const Runfiles = "/runfiles"

// ReportFile is where the test writes its report in the machine.
const ReportFile = "/run/test.xml"

// A Task is what the machine is to do.
type Task struct {
	// Port is the path of the serial port for frames.
	Port string
	// Program is the path of the test, Arguments are its arguments, and
	// Environment its environment, whole.
	Program     string
	Arguments   []string
	Environment []string
	// Folder is where the test starts.
	Folder string
}
