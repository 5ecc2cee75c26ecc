package hardening

import "powercloud.unidatum.com/go/image/kconfig"

// parameters are the recommendations for the parameters that are set while the kernel
// runs. The checker has a symbol for the size of the random part of programs'
// addresses, ARCH_MMAP_RND_BITS, which should be what the architecture can do at most;
// it is the default of a parameter.
func parameters() []Recommendation {
	parameter := func(name string, value kconfig.Value, architecture string, unless kconfig.Line) Recommendation {
		return Recommendation{Setting: Setting{Parameter, name}, Value: value, Architecture: architecture, Unless: unless}
	}
	var none kconfig.Line
	return []Recommendation{
		parameter("kernel.kptr_restrict", "2", "", none),
		parameter("kernel.dmesg_restrict", "1", "", symbol("SECURITY_DMESG_RESTRICT", "y")),
		parameter("kernel.modules_disabled", "1", "", symbol("MODULES", "n")),
		parameter("kernel.perf_event_paranoid", "3", "", symbol("PERF_EVENTS", "n")),
		parameter("kernel.kexec_load_disabled", "1", "", symbol("KEXEC_CORE", "n")),
		parameter("kernel.randomize_va_space", "2", "", none),
		parameter("kernel.yama.ptrace_scope", "3", "", none),
		parameter("kernel.unprivileged_bpf_disabled", "1", "", symbol("BPF_SYSCALL", "n")),
		parameter("kernel.warn_limit", "1", "", none),
		parameter("kernel.oops_limit", "1", "", none),
		parameter("kernel.sysrq", "0", "", symbol("MAGIC_SYSRQ", "n")),
		parameter("user.max_user_namespaces", "0", "", symbol("USER_NS", "n")),
		parameter("dev.tty.ldisc_autoload", "0", "", symbol("LDISC_AUTOLOAD", "n")),
		parameter("dev.tty.legacy_tiocsti", "0", "", none),
		parameter("net.core.bpf_jit_harden", "2", "", symbol("BPF_JIT", "n")),
		parameter("vm.unprivileged_userfaultfd", "0", "", symbol("USERFAULTFD", "n")),
		parameter("vm.mmap_rnd_bits", "32", "amd64", symbol("ARCH_MMAP_RND_BITS", "32")),
		parameter("vm.mmap_rnd_bits", "33", "arm64", symbol("ARCH_MMAP_RND_BITS", "33")),
		parameter("fs.protected_symlinks", "1", "", none),
		parameter("fs.protected_hardlinks", "1", "", none),
		parameter("fs.protected_fifos", "2", "", none),
		parameter("fs.protected_regular", "2", "", none),
		parameter("fs.suid_dumpable", "0", "", none),
	}
}
