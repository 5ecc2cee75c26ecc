package kernel_test

import (
	"testing"

	"powercloud.unidatum.com/go/image/hardening"
	"powercloud.unidatum.com/go/image/kconfig"
	"powercloud.unidatum.com/go/node/boot"
	"powercloud.unidatum.com/tests/built"
)

// architectures are those that nodes have.
var architectures = [...]string{"amd64", "arm64"}

// config returns the whole configuration of a kernel.
func config(t *testing.T, architecture string) kconfig.Config {
	t.Helper()
	parsed, err := kconfig.ParseConfig(string(built.Content(t, "CONFIG_"+architecture)))
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// TestHardening compares the kernels, and what PID 1 sets of their parameters, with
// what the Kernel Self-Protection Project recommends. kernel/hardening.md must explain
// every departure, and nothing else.
func TestHardening(t *testing.T) {
	explained, err := hardening.ParseDocument(string(built.Content(t, "HARDENING")))
	if err != nil {
		t.Fatalf("kernel/hardening.md: %v", err)
	}
	var found []hardening.Departure
	for _, architecture := range architectures {
		found = append(found, hardening.Departures(hardening.Kernel{
			Architecture: architecture, Config: config(t, architecture), Parameters: boot.Settings(architecture),
		})...)
	}
	if err := hardening.Compare(found, explained); err != nil {
		t.Errorf("kernel/hardening.md:\n%v", err)
	}
}

// drivers are those of the manual's table of supported hardware.
var drivers = map[string][]string{
	"KVM":              {"VIRTIO_NET", "VIRTIO_BLK", "SCSI_VIRTIO"},
	"AWS":              {"ENA_ETHERNET", "BLK_DEV_NVME"},
	"Google Cloud":     {"GVE", "VIRTIO_NET", "BLK_DEV_NVME", "SCSI_VIRTIO"},
	"Azure":            {"HYPERV_NET", "MICROSOFT_MANA", "HYPERV_STORAGE", "BLK_DEV_NVME"},
	"VMware":           {"VMXNET3", "SATA_AHCI"},
	"Intel's cards":    {"E1000E", "IGB", "IGC", "IXGBE", "I40E", "ICE"},
	"other cards":      {"MLX5_CORE_EN", "BNXT", "R8169"},
	"servers' disks":   {"BLK_DEV_NVME", "SATA_AHCI", "MEGARAID_SAS", "SCSI_MPT3SAS"},
	"the state volume": {"DM_CRYPT", "DM_INTEGRITY", "EXT4_FS", "CRYPTO_XTS", "CRYPTO_HMAC", "CRYPTO_SHA256"},
	"TPMs":             {"TCG_TIS", "TCG_CRB"},
	"join bundles":     {"FW_CFG_SYSFS", "DMI_SYSFS"},
	"the mesh":         {"WIREGUARD", "TUN", "NF_TABLES", "NFT_MASQ", "NFT_NAT", "NFT_REJECT"},
	"microVMs":         {"KVM", "VHOST_NET", "VHOST_VSOCK"},
}

// processorDrivers are those of one architecture.
var processorDrivers = map[string][]string{
	"amd64": {"VMWARE_PVSCSI", "KVM_INTEL", "KVM_AMD", "SEV_GUEST", "CRYPTO_AES_NI_INTEL", "CRYPTO_SHA256_SSSE3", "ITCO_WDT", "SP5100_TCO"},
	"arm64": {"CRYPTO_AES_ARM64_CE_BLK", "CRYPTO_SHA2_ARM64_CE", "ARM_SBSA_WATCHDOG", "SERIAL_AMBA_PL011_CONSOLE"},
}

func TestDrivers(t *testing.T) {
	for _, architecture := range architectures {
		built := config(t, architecture)
		for use, symbols := range drivers {
			for _, symbol := range symbols {
				if built.Get(symbol) != "y" {
					t.Errorf("%s: CONFIG_%s, for %s, is %s", architecture, symbol, use, built.Get(symbol))
				}
			}
		}
		for _, symbol := range processorDrivers[architecture] {
			if built.Get(symbol) != "y" {
				t.Errorf("%s: CONFIG_%s is %s", architecture, symbol, built.Get(symbol))
			}
		}
		if built.Get("MODULES") != "n" {
			t.Errorf("%s: there are modules", architecture)
		}
	}
}
