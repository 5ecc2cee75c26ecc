package boot

import "powercloud.unidatum.com/go/sys/sysctl"

// randomBits is how many bits of the addresses of programs' memory are random, by
// architecture: the most that it can do (Linux's ARCH_MMAP_RND_BITS_MAX).
var randomBits = map[string]string{"amd64": "32", "arm64": "33"}

// Settings returns the kernel's parameters on a node of an architecture, "amd64" or
// "arm64". One that the kernel hasn't got is passed over: what it would forbid isn't
// there either. Parameters of single network interfaces are pcd's.
func Settings(architecture string) []sysctl.Setting {
	return []sysctl.Setting{
		// When things go wrong.
		{Name: "kernel/panic", Value: "10", Reason: "a node comes back by itself; the pause lets a monitor be read and slows a boot loop"},
		{Name: "kernel/panic_on_oops", Value: "1", Reason: "after an oops the kernel's state can't be trusted"},
		{Name: "kernel/oops_limit", Value: "1", Reason: "the same, should the parameter before be changed"},
		{Name: "kernel/warn_limit", Value: "100", Reason: "an attack that is tried again and again ends; one warning alone is none"},
		{Name: "kernel/printk_devkmsg", Value: "on", Reason: "the kernel otherwise drops most of what pcd logs at once, last words too"},
		{Name: "kernel/sysrq", Value: "0", Reason: "whoever is at a console may not command the kernel"},

		// What programs may learn about the kernel and about each other.
		{Name: "kernel/kptr_restrict", Value: "2", Reason: "addresses of the kernel help an attacker"},
		{Name: "kernel/dmesg_restrict", Value: "1", Reason: "the kernel's log isn't for apps"},
		{Name: "kernel/perf_event_paranoid", Value: "3", Reason: "counters leak what others do; levels above 2 count as 2 in some kernels"},
		{Name: "kernel/yama/ptrace_scope", Value: "3", Reason: "nothing on a node debugs another process"},
		{Name: "kernel/randomize_va_space", Value: "2", Reason: "places of code and data can't be guessed"},
		{Name: "vm/mmap_rnd_bits", Value: randomBits[architecture], Reason: "nor found by trying, as far as the processor lets it"},
		{Name: "kernel/core_pattern", Value: "|/bin/false", Reason: "memory with keys in it is never written anywhere"},
		{Name: "fs/suid_dumpable", Value: "0", Reason: "the same for programs that changed their user"},

		// What the kernel offers that a node doesn't use.
		{Name: "kernel/kexec_load_disabled", Value: "1", Reason: "only firmware starts a kernel, after checking it"},
		{Name: "kernel/modules_disabled", Value: "1", Reason: "nothing is loaded into a running kernel"},
		{Name: "user/max_user_namespaces", Value: "0", Reason: "apps have no use for them, and they open much of the kernel to everybody"},
		{Name: "kernel/unprivileged_bpf_disabled", Value: "1", Reason: "apps have no use for BPF"},
		{Name: "net/core/bpf_jit_harden", Value: "2", Reason: "programs can't smuggle code in as constants"},
		{Name: "kernel/io_uring_disabled", Value: "2", Reason: "apps have no use for it, and much was wrong with it"},
		{Name: "vm/unprivileged_userfaultfd", Value: "0", Reason: "it makes races in the kernel easy to win"},
		{Name: "dev/tty/ldisc_autoload", Value: "0", Reason: "nobody sets line disciplines"},
		{Name: "dev/tty/legacy_tiocsti", Value: "0", Reason: "nobody types in another's name"},

		// Files in folders that several users write to.
		{Name: "fs/protected_hardlinks", Value: "1", Reason: "no links to files of others"},
		{Name: "fs/protected_symlinks", Value: "1", Reason: "no following of others' links in /tmp"},
		{Name: "fs/protected_fifos", Value: "2", Reason: "no opening of others' pipes where a file was meant"},
		{Name: "fs/protected_regular", Value: "2", Reason: "no opening of others' files where a new one was meant"},

		// The network.
		{Name: "net/ipv4/tcp_syncookies", Value: "1", Reason: "a flood of SYNs doesn't fill the queue"},
		{Name: "net/ipv4/tcp_rfc1337", Value: "1", Reason: "a late RST doesn't end TIME-WAIT"},
		{Name: "net/ipv4/icmp_echo_ignore_broadcasts", Value: "1", Reason: "a node is no amplifier"},
		{Name: "net/ipv4/conf/all/rp_filter", Value: "2", Reason: "a source must be reachable at all; strictly would break machines with two ways out"},
		{Name: "net/ipv4/conf/default/rp_filter", Value: "2", Reason: "the same for interfaces to come"},
		{Name: "net/ipv4/conf/all/accept_redirects", Value: "0", Reason: "strangers on the network don't set routes"},
		{Name: "net/ipv4/conf/default/accept_redirects", Value: "0", Reason: "the same for interfaces to come"},
		{Name: "net/ipv4/conf/all/secure_redirects", Value: "0", Reason: "nor do gateways, which anybody can claim to be"},
		{Name: "net/ipv4/conf/default/secure_redirects", Value: "0", Reason: "the same for interfaces to come"},
		{Name: "net/ipv4/conf/all/send_redirects", Value: "0", Reason: "a node is no router for its neighbours"},
		{Name: "net/ipv4/conf/default/send_redirects", Value: "0", Reason: "the same for interfaces to come"},
		{Name: "net/ipv4/conf/all/accept_source_route", Value: "0", Reason: "senders don't choose the way"},
		{Name: "net/ipv4/conf/default/accept_source_route", Value: "0", Reason: "the same for interfaces to come"},
		{Name: "net/ipv4/conf/all/arp_ignore", Value: "1", Reason: "an interface answers for its own addresses only"},
		{Name: "net/ipv4/conf/all/arp_announce", Value: "2", Reason: "and asks in the name of its own addresses only"},
		{Name: "net/ipv4/conf/all/ignore_routes_with_linkdown", Value: "1", Reason: "without a carrier on one interface the next one's routes are used"},
		{Name: "net/ipv6/conf/all/ignore_routes_with_linkdown", Value: "1", Reason: "the same for IPv6"},
		{Name: "net/ipv6/conf/all/accept_redirects", Value: "0", Reason: "strangers on the network don't set routes"},
		{Name: "net/ipv6/conf/default/accept_redirects", Value: "0", Reason: "the same for interfaces to come"},
		{Name: "net/ipv6/conf/all/accept_source_route", Value: "-1", Reason: "senders don't choose the way; 0 would allow type 2"},
		{Name: "net/ipv6/conf/default/accept_source_route", Value: "-1", Reason: "the same for interfaces to come"},
		{Name: "net/ipv6/conf/default/accept_ra", Value: "0", Reason: "an interface listens to routers once pcd takes it over"},
	}
}
