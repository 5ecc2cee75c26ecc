package hardening

import (
	"slices"

	"powercloud.unidatum.com/go/image/kconfig"
)

// Recommendations returns the project's page "Recommended Settings"
// (https://kspp.github.io/Recommended_Settings) for 64-bit kernels that GCC
// compiles, and what Alexander Popov's kernel-hardening-checker adds from the same
// project, as of Linux 6.6.
func Recommendations() []Recommendation {
	return slices.Concat(symbols(), options(), parameters())
}

// symbols are the recommendations for the kernel's configuration.
func symbols() []Recommendation {
	list := func(architecture, condition string, value kconfig.Value, symbols ...string) []Recommendation {
		var recommendations []Recommendation
		for _, symbol := range symbols {
			recommendations = append(recommendations, Recommendation{
				Setting: Setting{Symbol, symbol}, Value: value, Architecture: architecture, If: condition,
			})
		}
		return recommendations
	}
	both := func(value kconfig.Value, symbols ...string) []Recommendation { return list("", "", value, symbols...) }
	amd64 := func(value kconfig.Value, symbols ...string) []Recommendation {
		return list("amd64", "", value, symbols...)
	}
	arm64 := func(value kconfig.Value, symbols ...string) []Recommendation {
		return list("arm64", "", value, symbols...)
	}
	return slices.Concat(
		both("y", memory[:]...),
		both("y", checks[:]...),
		both("y", modules[:]...),
		both("n", off[:]...),
		both("100", "KFENCE_SAMPLE_INTERVAL"),
		both("-1", "PANIC_TIMEOUT"),
		[]Recommendation{
			{Setting: Setting{Symbol, "LSM"}, Value: `"lockdown,yama,landlock"`, List: true},
			{Setting: Setting{Symbol, "SECURITY_SELINUX"}, Value: "y", Or: []string{"SECURITY_APPARMOR", "SECURITY_SMACK", "SECURITY_TOMOYO"}},
		},
		list("", "DEVMEM", "y", "STRICT_DEVMEM", "IO_STRICT_DEVMEM"),
		list("", "MAGIC_SYSRQ", "176", "MAGIC_SYSRQ_DEFAULT_ENABLE"),
		list("", "MODULES", "y", "STRICT_MODULE_RWX", "MODULE_SIG", "MODULE_SIG_FORCE", "MODULE_SIG_ALL", "MODULE_SIG_SHA512"),
		amd64("y", "X86_64", "RANDOMIZE_MEMORY", "LEGACY_VSYSCALL_NONE", "PAGE_TABLE_ISOLATION", "X86_KERNEL_IBT",
			"X86_USER_SHADOW_STACK", "INTEL_IOMMU", "INTEL_IOMMU_DEFAULT_ON", "INTEL_IOMMU_SVM", "AMD_IOMMU", "AMD_IOMMU_V2",
			"SLS", "RETPOLINE", "X86_UMIP", "MICROCODE", "MICROCODE_INTEL", "MICROCODE_AMD"),
		amd64("n", "X86_MSR", "X86_VSYSCALL_EMULATION", "IA32_EMULATION", "X86_X32", "X86_X32_ABI", "MODIFY_LDT_SYSCALL",
			"X86_IOPL_IOPERM", "X86_CPUID"),
		amd64("65536", "DEFAULT_MMAP_MIN_ADDR"),
		arm64("y", "ARM64_SW_TTBR0_PAN", "UNMAP_KERNEL_AT_EL0", "SHADOW_CALL_STACK", "UNWIND_PATCH_PAC_INTO_SCS",
			"ARM64_PTR_AUTH", "ARM64_PTR_AUTH_KERNEL", "ARM64_BTI", "ARM64_BTI_KERNEL", "ARM64_MTE", "KASAN_HW_TAGS",
			"ARM64_E0PD", "ARM64_EPAN", "RODATA_FULL_DEFAULT_ENABLED", "MITIGATE_SPECTRE_BRANCH_HISTORY"),
		arm64("32768", "DEFAULT_MMAP_MIN_ADDR"),
	)
}

// memory protects memory and what is in it.
var memory = [...]string{
	"STRICT_KERNEL_RWX", "DEBUG_WX", "STACKPROTECTOR", "STACKPROTECTOR_STRONG", "VMAP_STACK", "THREAD_INFO_IN_TASK",
	"HARDENED_USERCOPY", "SLAB_FREELIST_RANDOM", "SLAB_FREELIST_HARDENED", "RANDOM_KMALLOC_CACHES", "SHUFFLE_PAGE_ALLOCATOR",
	"PAGE_TABLE_CHECK", "PAGE_TABLE_CHECK_ENFORCED", "SLUB_DEBUG", "PAGE_POISONING", "INIT_ON_ALLOC_DEFAULT_ON",
	"INIT_ON_FREE_DEFAULT_ON", "INIT_STACK_ALL_ZERO", "FORTIFY_SOURCE", "RANDOMIZE_BASE", "RANDOMIZE_KSTACK_OFFSET_DEFAULT",
	"ZERO_CALL_USED_REGS", "RESET_ATTACK_MITIGATION", "EFI_DISABLE_PCI_DMA", "IOMMU_SUPPORT", "IOMMU_DEFAULT_DMA_STRICT",
	"GCC_PLUGINS", "GCC_PLUGIN_LATENT_ENTROPY", "GCC_PLUGIN_STACKLEAK", "GCC_PLUGIN_STRUCTLEAK",
	"GCC_PLUGIN_STRUCTLEAK_BYREF_ALL", "RANDSTRUCT_FULL", "CFI_CLANG",
	"RANDOM_TRUST_BOOTLOADER", "RANDOM_TRUST_CPU", "HW_RANDOM_TPM",
}

// checks end what they find damaged.
var checks = [...]string{
	"BUG", "LIST_HARDENED", "DEBUG_CREDENTIALS", "DEBUG_NOTIFIERS", "DEBUG_LIST", "DEBUG_SG", "DEBUG_VIRTUAL",
	"BUG_ON_DATA_CORRUPTION", "SCHED_STACK_END_CHECK", "UBSAN", "UBSAN_TRAP", "UBSAN_BOUNDS", "UBSAN_LOCAL_BOUNDS",
	"UBSAN_SANITIZE_ALL", "KFENCE", "PANIC_ON_OOPS", "WERROR",
}

// modules keep processes from each other and from the kernel.
var modules = [...]string{
	"SYN_COOKIES", "SECCOMP", "SECCOMP_FILTER", "SECURITY", "SECURITY_YAMA", "SECURITY_LANDLOCK", "SECURITY_LOCKDOWN_LSM",
	"SECURITY_LOCKDOWN_LSM_EARLY", "LOCK_DOWN_KERNEL_FORCE_CONFIDENTIALITY", "SECURITY_DMESG_RESTRICT",
	"STATIC_USERMODEHELPER", "SCHED_CORE", "BPF_UNPRIV_DEFAULT_OFF",
}

// off are ways in.
var off = [...]string{
	"DEVMEM", "LDISC_AUTOLOAD", "SECURITY_SELINUX_BOOTPARAM", "SECURITY_SELINUX_DEVELOP", "SECURITY_SELINUX_DISABLE",
	"SECURITY_WRITABLE_HOOKS", "HARDENED_USERCOPY_FALLBACK", "HARDENED_USERCOPY_PAGESPAN", "SLAB_MERGE_DEFAULT",
	"UBSAN_SHIFT", "UBSAN_DIV_ZERO", "UBSAN_UNREACHABLE", "UBSAN_BOOL", "UBSAN_ENUM", "UBSAN_ALIGNMENT",
	"ACPI_CUSTOM_METHOD", "COMPAT_BRK", "DEVKMEM", "PROC_KCORE", "COMPAT_VDSO", "KEXEC", "KEXEC_FILE", "HIBERNATION",
	"INET_DIAG", "BINFMT_MISC", "LEGACY_PTYS", "LEGACY_TIOCSTI", "MODULES", "STACKLEAK_METRICS",
	"STACKLEAK_RUNTIME_DISABLE", "RANDSTRUCT_PERFORMANCE", "CFI_PERMISSIVE", "COMPAT", "USER_NS", "DEBUG_FS", "USELIB",
	"BPF_SYSCALL", "IO_URING", "USERFAULTFD", "KPROBES", "FTRACE", "PROC_VMCORE", "PROC_PAGE_MONITOR", "CHECKPOINT_RESTORE",
	"KSM", "DEVPORT", "ACPI_TABLE_UPGRADE", "CRASH_DUMP", "MAGIC_SYSRQ", "KCMP", "NOTIFIER_ERROR_INJECTION", "FAIL_FUTEX",
	"PUNIT_ATOM_DEBUG", "ACPI_CONFIGFS", "EDAC_DEBUG", "DRM_I915_DEBUG", "SLUB_DEBUG_ON", "LIVEPATCH", "IP_DCCP", "IP_SCTP",
	"VIDEO_VIVID", "PTDUMP_DEBUGFS", "X86_INTEL_TSX_MODE_ON", "AIO", "BLK_DEV_FD", "COREDUMP", "EXT4_DEBUG",
	"KALLSYMS", "RSEQ", "VT", "FB",
}
