package selftest

import (
	"context"
	"fmt"
	"regexp"
	"testing"

	"powercloud.unidatum.com/tests/machine"
)

// TestObserve has a program, not a test, look at a machine, and count its
// instructions and ask for its memory.
func TestObserve(t *testing.T) {
	ctx := machine.Patient(t)
	config := machine.Config{Kernel: kernel(t, machine.AMD64, "virtio_pci", "virtio_balloon"), Balloon: true, CountInstructions: true}
	err := machine.Observe(ctx, config, func(ctx context.Context, o *machine.Observed) error {
		early, err := o.Instructions(ctx)
		if err != nil {
			return err
		}
		if _, err := o.Console().Find(ctx, regexp.MustCompile(`guest: ready`)); err != nil {
			return err
		}
		all, err := o.Instructions(ctx)
		if err != nil {
			return err
		}
		if all < early+1e8 {
			return fmt.Errorf("%d instructions were executed at the beginning, and only %d until Linux was ready", early, all)
		}
		t.Logf("%d instructions were executed at the beginning, and %d until Linux was ready", early, all)
		memory, err := o.Memory(ctx)
		if err != nil {
			return err
		}
		if memory.Total < 256<<20 || memory.Total >= 512<<20 || memory.Available < 128<<20 {
			return fmt.Errorf("a machine with 512 MiB says that it has %+v", memory)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
