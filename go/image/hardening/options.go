package hardening

import "powercloud.unidatum.com/go/image/kconfig"

// options are the recommendations for the kernel's command line. Those that the page
// has for kernels before 5.3 alone aren't among them: init_on_alloc and init_on_free
// took their place. Where the checker only asks that an option isn't "off", it should
// be absent here: the kernel then does what is right for the processor.
func options() []Recommendation {
	option := func(name string, value kconfig.Value, architecture string, unless kconfig.Line) Recommendation {
		return Recommendation{Setting: Setting{Option, name}, Value: value, Architecture: architecture, Unless: unless}
	}
	var none kconfig.Line
	recommendations := []Recommendation{
		option("hardened_usercopy", "1", "", symbol("HARDENED_USERCOPY", "y")),
		option("init_on_alloc", "1", "", symbol("INIT_ON_ALLOC_DEFAULT_ON", "y")),
		option("init_on_free", "1", "", symbol("INIT_ON_FREE_DEFAULT_ON", "y")),
		option("randomize_kstack_offset", "on", "", symbol("RANDOMIZE_KSTACK_OFFSET_DEFAULT", "y")),
		option("page_alloc.shuffle", "1", "", none),
		option("slab_nomerge", Present, "", symbol("SLAB_MERGE_DEFAULT", "n")),
		option("slub_debug", "ZF", "", none),
		option("kfence.sample_interval", "100", "", symbol("KFENCE_SAMPLE_INTERVAL", "100")),
		option("iommu.passthrough", "0", "", symbol("IOMMU_DEFAULT_PASSTHROUGH", "n")),
		option("iommu.strict", "1", "", symbol("IOMMU_DEFAULT_DMA_STRICT", "y")),
		option("mitigations", "auto,nosmt", "", none),
		option("nosmt", Present, "", none),
		option("debugfs", "off", "", symbol("DEBUG_FS", "n")),
		option("pti", "on", "amd64", none),
		option("vsyscall", "none", "amd64", symbol("LEGACY_VSYSCALL_NONE", "y")),
		option("vdso32", "0", "amd64", symbol("COMPAT_VDSO", "n")),
		option("cfi", "kcfi", "amd64", none),
		option("iommu", "force", "amd64", none),
		option("tsx", "off", "amd64", symbol("X86_INTEL_TSX_MODE_OFF", "y")),
		option("rodata", "full", "arm64", symbol("RODATA_FULL_DEFAULT_ENABLED", "y")),
	}
	absent := func(architecture string, names ...string) {
		for _, name := range names {
			recommendations = append(recommendations, Recommendation{Setting: Setting{Option, name}, Value: Absent, Architecture: architecture})
		}
	}
	absent("", weakening[:]...)
	absent("amd64", weakeningAMD64[:]...)
	absent("arm64", weakeningARM64[:]...)
	return recommendations
}

// weakening are options without which the kernel protects itself as well as it can,
// on both architectures; the next two are those of one.
var weakening = [...]string{
	"nokaslr", "norandmaps", "no_hash_pointers", "slab_merge", "slub_merge", "slab_common.usercopy_fallback",
	"sysrq_always_enabled", "nospectre_v2",
}

var weakeningAMD64 = [...]string{
	"nosmep", "nosmap", "nopti", "nospectre_v1", "nospec_store_bypass_disable", "dis_ucode_ldr", "rodata", "spectre_v2",
	"spectre_v2_user", "spectre_bhi", "spec_store_bypass_disable", "l1tf", "mds", "tsx_async_abort", "srbds",
	"mmio_stale_data", "retbleed", "spec_rstack_overflow", "gather_data_sampling", "reg_file_data_sampling",
}

var weakeningARM64 = [...]string{
	"nospectre_bhb", "arm64.nobti", "arm64.nopauth", "arm64.nomte", "kpti", "ssbd",
}

// symbol is a line of a configuration.
func symbol(name string, value kconfig.Value) kconfig.Line {
	return kconfig.Line{Symbol: name, Value: value}
}
