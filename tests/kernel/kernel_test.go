package kernel_test

import (
	"maps"
	"regexp"
	"strings"
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

// hardware are the drivers that the table of supported hardware in docs/install.md
// names.
var hardware = map[string][]string{
	"KVM":            {"VIRTIO_NET", "VIRTIO_BLK", "SCSI_VIRTIO"},
	"AWS":            {"ENA_ETHERNET", "BLK_DEV_NVME"},
	"Google Cloud":   {"GVE", "VIRTIO_NET", "VIRTIO_PCI_LEGACY", "BLK_DEV_NVME", "SCSI_VIRTIO"},
	"Azure":          {"HYPERV_NET", "MICROSOFT_MANA", "HYPERV_STORAGE", "BLK_DEV_NVME", "PCI_HYPERV"},
	"VMware":         {"VMXNET3", "SATA_AHCI"},
	"Intel's cards":  {"E1000E", "IGB", "IGC", "IXGBE", "I40E", "ICE"},
	"other cards":    {"MLX5_CORE_EN", "BNXT", "R8169"},
	"servers' disks": {"BLK_DEV_NVME", "SATA_AHCI", "MEGARAID_SAS", "SCSI_MPT3SAS"},
	"TPMs":           {"TCG_TIS", "TCG_CRB"},
	"consoles":       {"SERIAL_8250_CONSOLE", "FB_EFI", "VT"},
}

// processorHardware are those of one architecture.
var processorHardware = map[string][]string{
	"amd64": {"VMWARE_PVSCSI", "ITCO_WDT", "SP5100_TCO"},
	"arm64": {"ARM_SBSA_WATCHDOG", "SERIAL_AMBA_PL011_CONSOLE"},
}

// others are what a node needs besides.
var others = map[string][]string{
	"the state volume": {"DM_CRYPT", "DM_INTEGRITY", "EXT4_FS", "CRYPTO_XTS", "CRYPTO_HMAC", "CRYPTO_SHA256"},
	"join bundles":     {"FW_CFG_SYSFS", "DMI_SYSFS"},
	"the mesh":         {"WIREGUARD", "TUN", "NF_TABLES", "NFT_MASQ", "NFT_NAT", "NFT_REJECT"},
	"microVMs":         {"KVM", "VHOST_NET", "VHOST_VSOCK"},
}

// processorOthers are those of one architecture.
var processorOthers = map[string][]string{
	"amd64": {"KVM_INTEL", "KVM_AMD", "SEV_GUEST", "CRYPTO_AES_NI_INTEL", "CRYPTO_SHA256_SSSE3"},
	"arm64": {"CRYPTO_AES_ARM64_CE_BLK", "CRYPTO_SHA2_ARM64_CE"},
}

func TestDrivers(t *testing.T) {
	for _, architecture := range architectures {
		built := config(t, architecture)
		wanted := map[string][]string{
			"hardware of this architecture": processorHardware[architecture], "this architecture": processorOthers[architecture],
		}
		maps.Copy(wanted, hardware)
		maps.Copy(wanted, others)
		for use, symbols := range wanted {
			for _, symbol := range symbols {
				if built.Get(symbol) != "y" {
					t.Errorf("%s: CONFIG_%s, for %s, is %s", architecture, symbol, use, built.Get(symbol))
				}
			}
		}
		if built.Get("MODULES") != "n" {
			t.Errorf("%s: there are modules", architecture)
		}
	}
}

// TestHardwareTable compares the manual's table of supported hardware with the drivers
// that TestDrivers finds in the kernels.
func TestHardwareTable(t *testing.T) {
	_, section, found := strings.Cut(string(built.Content(t, "INSTALL")), "\n## Supported hardware\n")
	if !found {
		t.Fatal("docs/install.md has no section with the supported hardware")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	named := map[string]bool{}
	setting := regexp.MustCompile("`([A-Z0-9_]+)`")
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, " | "); len(cells) == 4 {
			for _, match := range setting.FindAllStringSubmatch(cells[1], -1) {
				named[match[1]] = true
			}
		}
	}
	tested := map[string]bool{}
	for _, drivers := range []map[string][]string{hardware, processorHardware} {
		for _, symbols := range drivers {
			for _, symbol := range symbols {
				tested[symbol] = true
			}
		}
	}
	for symbol := range tested {
		if !named[symbol] {
			t.Errorf("the table in docs/install.md lacks %s", symbol)
		}
	}
	for symbol := range named {
		if !tested[symbol] {
			t.Errorf("the table in docs/install.md has %s, which this test doesn't look for in the kernels", symbol)
		}
	}
}
