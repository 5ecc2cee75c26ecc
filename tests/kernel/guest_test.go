package kernel_test

import (
	"slices"
	"testing"

	"powercloud.unidatum.com/go/image/hardening"
	"powercloud.unidatum.com/go/image/kconfig"
	"powercloud.unidatum.com/tests/built"
)

// absentInGuests is what protects nodes from hardware, or by it, and what microVMs have
// no hardware for, by architecture.
var absentInGuests = map[string][]string{
	"amd64": {"AMD_IOMMU", "HW_RANDOM_TPM", "INTEL_IOMMU", "INTEL_IOMMU_DEFAULT_ON", "IOMMU_DEFAULT_DMA_STRICT", "IOMMU_SUPPORT", "RESET_ATTACK_MITIGATION"},
	"arm64": {"HW_RANDOM_TPM", "IOMMU_DEFAULT_DMA_STRICT", "IOMMU_SUPPORT", "RESET_ATTACK_MITIGATION"},
}

// TestHardeningOfGuests compares the configurations of the kernels inside microVMs with
// the recommendations. What kernel/hardening.md explains for nodes holds for them too,
// and beyond that they depart where they have no hardware, and nowhere else. Their
// command line and their first program aren't the kernel's own.
func TestHardeningOfGuests(t *testing.T) {
	explained, err := hardening.ParseDocument(string(built.Content(t, "HARDENING")))
	if err != nil {
		t.Fatalf("kernel/hardening.md: %v", err)
	}
	for _, architecture := range architectures {
		parsed, err := kconfig.ParseConfig(string(built.Content(t, "GUEST_"+architecture)))
		if err != nil {
			t.Fatal(err)
		}
		var absent []string
		for _, d := range hardening.Departures(hardening.Kernel{Architecture: architecture, Config: parsed}) {
			switch {
			case d.Kind != hardening.Symbol || slices.Contains(explained, d):
			case d.Here == kconfig.No:
				absent = append(absent, d.Name)
			default:
				t.Errorf("%s, and no row of kernel/hardening.md explains that", d)
			}
		}
		if slices.Sort(absent); !slices.Equal(absent, absentInGuests[architecture]) {
			t.Errorf("%s: guests lack %q, want %q", architecture, absent, absentInGuests[architecture])
		}
		for symbol, want := range map[string]kconfig.Value{"ACPI": "n", "EFI": "n", "VIRTIO_MMIO": "y", "MODULES": "n"} {
			if got := parsed.Get(symbol); got != want {
				t.Errorf("%s: CONFIG_%s is %s in guests, want %s", architecture, symbol, got, want)
			}
		}
	}
}
