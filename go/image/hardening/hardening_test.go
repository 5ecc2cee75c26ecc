package hardening

import (
	"slices"
	"strings"
	"testing"

	"powercloud.unidatum.com/go/image/kconfig"
	"powercloud.unidatum.com/go/sys/sysctl"
)

// best is a kernel that follows every recommendation, by options and parameters
// rather than by their defaults.
func best(architecture string) Kernel {
	k := Kernel{Architecture: architecture, Config: kconfig.Config{}}
	words := ""
	for _, r := range Recommendations() {
		if r.Architecture != "" && r.Architecture != architecture || r.Value == Absent {
			continue
		}
		switch r.Kind {
		case Symbol:
			k.Config[r.Name] = r.Value
		case Option:
			words += " " + r.Name
			if r.Value != Present {
				words += "=" + string(r.Value)
			}
		case Parameter:
			k.Parameters = append(k.Parameters, sysctl.Setting{Name: strings.ReplaceAll(r.Name, ".", "/"), Value: string(r.Value)})
		}
	}
	k.Config["CMDLINE"] = kconfig.Value(`"` + words[1:] + `"`)
	return k
}

// change returns the settings with one at another value.
func change(settings []sysctl.Setting, name, value string) []sysctl.Setting {
	changed := slices.Clone(settings)
	for i := range changed {
		if changed[i].Name == name {
			changed[i].Value = value
		}
	}
	return changed
}

func TestDepartures(t *testing.T) {
	for _, architecture := range []string{"amd64", "arm64"} {
		k := best(architecture)
		if found := Departures(k); len(found) > 0 {
			t.Errorf("the best kernel departs: %v", found)
		}
		k.Config["PANIC_TIMEOUT"] = "10"
		delete(k.Config, "VMAP_STACK")
		k.Config["DEVMEM"] = "y"
		delete(k.Config, "STRICT_DEVMEM")
		line := strings.Replace(string(k.Config["CMDLINE"]), " nosmt", "", 1)
		k.Config["CMDLINE"] = kconfig.Value(strings.TrimSuffix(line, `"`) + ` mitigations=off nokaslr"`)
		k.Parameters = change(k.Parameters, "kernel/yama/ptrace_scope", "1")
		want := []Departure{
			{Setting{Symbol, "VMAP_STACK"}, "y", "n", architecture},
			{Setting{Symbol, "DEVMEM"}, "n", "y", architecture},
			{Setting{Symbol, "PANIC_TIMEOUT"}, "-1", "10", architecture},
			{Setting{Symbol, "STRICT_DEVMEM"}, "y", "n", architecture},
			{Setting{Option, "mitigations"}, "auto,nosmt", "off", architecture},
			{Setting{Option, "nosmt"}, "present", "absent", architecture},
			{Setting{Option, "nokaslr"}, "absent", "present", architecture},
			{Setting{Parameter, "kernel.yama.ptrace_scope"}, "3", "1", architecture},
		}
		if found := Departures(k); !slices.Equal(found, want) {
			t.Errorf("the departures are %v, want %v", found, want)
		}
		if found := Departures(Kernel{Architecture: architecture}); len(found) < 80 {
			t.Errorf("an empty kernel has only %d departures", len(found))
		}
	}
	other := best("amd64")
	other.Architecture = "arm64"
	if found := Departures(other); len(found) == 0 {
		t.Error("both architectures have the same recommendations")
	}
}

// TestDefaults has the configuration alone give what an option or a parameter would.
func TestDefaults(t *testing.T) {
	departs := func(config kconfig.Config, parameters []sysctl.Setting, name string) bool {
		return slices.ContainsFunc(Departures(Kernel{"amd64", config, parameters}), func(d Departure) bool {
			return d.Kind != Symbol && d.Name == name
		})
	}
	on := []sysctl.Setting{{Name: "kernel/modules_disabled", Value: "0"}}
	for name, c := range map[string]struct {
		config     kconfig.Config
		parameters []sysctl.Setting
		setting    string
		want       bool
	}{
		"an option's default":             {kconfig.Config{"INIT_ON_ALLOC_DEFAULT_ON": "y"}, nil, "init_on_alloc", false},
		"another default":                 {kconfig.Config{}, nil, "init_on_alloc", true},
		"an option over its default":      {kconfig.Config{"INIT_ON_ALLOC_DEFAULT_ON": "y", "CMDLINE": `"init_on_alloc=0"`}, nil, "init_on_alloc", true},
		"an option instead":               {kconfig.Config{"CMDLINE": `"init_on_alloc=1"`}, nil, "init_on_alloc", false},
		"the last of two counts":          {kconfig.Config{"CMDLINE": `"init_on_alloc=1 init_on_alloc=0"`}, nil, "init_on_alloc", true},
		"a name with a dash":              {kconfig.Config{"CMDLINE": `"init-on-alloc=1"`}, nil, "init_on_alloc", false},
		"no default by the configuration": {kconfig.Config{"CPU_MITIGATIONS": "y"}, nil, "mitigations", true},
		"a parameter of what isn't there": {kconfig.Config{}, nil, "kernel.modules_disabled", false},
		"a parameter that nobody sets":    {kconfig.Config{"MODULES": "y"}, nil, "kernel.modules_disabled", true},
		"a parameter set otherwise":       {kconfig.Config{"MODULES": "y"}, on, "kernel.modules_disabled", true},
		"a parameter's default":           {kconfig.Config{"ARCH_MMAP_RND_BITS": "32"}, nil, "vm.mmap_rnd_bits", false},
	} {
		if got := departs(c.config, c.parameters, c.setting); got != c.want {
			t.Errorf("%s: it departs is %v, want %v", name, got, c.want)
		}
	}
}

// TestLists has lists that hold what is recommended, and such that don't.
func TestLists(t *testing.T) {
	for list, want := range map[kconfig.Value]bool{
		`"lockdown,yama,landlock"`:     false,
		`"bpf,landlock,yama,lockdown"`: false,
		`"lockdown,yama"`:              true,
		`"lockdown,yama,landlocked"`:   true,
		`"lockdown yama landlock"`:     true,
		`""`:                           true,
		kconfig.No:                     true,
	} {
		config := kconfig.Config{"LSM": list}
		if got := symbolDeparts(config, "LSM"); got != want {
			t.Errorf("%s: it departs is %v, want %v", list, got, want)
		}
	}
}

// TestAlternatives has one symbol instead of another.
func TestAlternatives(t *testing.T) {
	for symbol, want := range map[string]bool{
		"SECURITY_SELINUX": false, "SECURITY_APPARMOR": false, "SECURITY_SMACK": false, "SECURITY_TOMOYO": false, "SECURITY_YAMA": true,
	} {
		if got := symbolDeparts(kconfig.Config{symbol: "y"}, "SECURITY_SELINUX"); got != want {
			t.Errorf("%s: it departs is %v, want %v", symbol, got, want)
		}
	}
}

// symbolDeparts tells whether a configuration departs by a symbol.
func symbolDeparts(config kconfig.Config, symbol string) bool {
	return slices.ContainsFunc(Departures(Kernel{Architecture: "amd64", Config: config}), func(d Departure) bool {
		return d.Setting == Setting{Symbol, symbol}
	})
}

func TestRecommendationsAreThereOnce(t *testing.T) {
	type place struct {
		Setting
		architecture string
	}
	seen := map[place]bool{}
	for _, r := range Recommendations() {
		for _, architecture := range []string{"amd64", "arm64"} {
			if r.Architecture != "" && r.Architecture != architecture {
				continue
			}
			if key := (place{r.Setting, architecture}); seen[key] {
				t.Errorf("%v is there twice", key)
			} else {
				seen[key] = true
			}
		}
	}
}

const document = "# A page\n\n| setting | recommended |\n| --- | --- |\n" +
	"| `CONFIG_A` | `y` | `n` | amd64, arm64 | A reason that says something. |\n" +
	"| `CONFIG_B` | `-1` | `10` | arm64 | Another reason, as good as that. |\n" +
	"| `c.d_e` (command line) | `auto,f` | `absent` | amd64 | A reason for an option of it. |\n" +
	"| `c.d_e` (sysctl) | `1` | `2` | amd64 | A reason for a parameter. |\n"

func TestParseDocument(t *testing.T) {
	explained, err := ParseDocument(document)
	want := []Departure{
		{Setting{Symbol, "A"}, "y", "n", "amd64"},
		{Setting{Symbol, "A"}, "y", "n", "arm64"},
		{Setting{Symbol, "B"}, "-1", "10", "arm64"},
		{Setting{Option, "c.d_e"}, "auto,f", "absent", "amd64"},
		{Setting{Parameter, "c.d_e"}, "1", "2", "amd64"},
	}
	if err != nil || !slices.Equal(explained, want) {
		t.Errorf("it was read as %v, %v, want %v", explained, err, want)
	}
	for bad, want := range map[string]string{
		"| `CONFIG_C` | `y` | `n` | amd64 | Short. |":                                          "line 9 isn't a row",
		"| `CONFIG_C` | `y` | `n` | amd64 |":                                                   "line 9 isn't a row",
		"| `CONFIG_C` | y | n | amd64 | A reason that says something. |":                       "line 9 isn't a row",
		"| `CONFIG_C` | `y` | `n` | arm64, amd64 | A reason that says something. |":            "line 9 isn't a row",
		"| `CONFIG_A` | `y` | `n` | arm64 | A reason that says something. |":                   "line 9 explains `CONFIG_A` again",
		"| `c.d_e` (sysctl) | `1` | `2` | amd64 | A reason that says something. |":             "line 9 explains `c.d_e` (sysctl) again",
		"| `c.d_e` | `1` | `2` | amd64 | A reason that says something. |":                      "line 9 isn't a row",
		"| `c.d_e` (kernel) | `1` | `2` | amd64 | A reason that says something. |":             "line 9 isn't a row",
		"| `CONFIG_` | `1` | `2` | amd64 | A reason that says something. |":                    "line 9 isn't a row",
		strings.Repeat("| `CONFIG_C` | `y` | `n` | arm64 | A reason that says it. |\n", 1<<15): "larger than",
	} {
		if _, err := ParseDocument(document + bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: the error is %v, want one with %q", bad, err, want)
		}
	}
}

func TestCompare(t *testing.T) {
	a, b := Departure{Setting{Symbol, "A"}, "y", "n", "amd64"}, Departure{Setting{Option, "B"}, "n", "y", "arm64"}
	if err := Compare([]Departure{a, b}, []Departure{b, a}); err != nil {
		t.Error(err)
	}
	err := Compare([]Departure{a}, []Departure{b})
	want := "amd64: `CONFIG_A` is n where y is recommended, and no row explains that\n" +
		"a row explains arm64: `B` (command line) is y where n is recommended, which isn't so"
	if err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
	// The same name of another kind isn't either.
	other := b
	other.Kind = Parameter
	if Compare([]Departure{b}, []Departure{other}) == nil {
		t.Error("an explanation of another kind of setting passed")
	}
	// The same setting with another value is not what was explained.
	other = a
	other.Here = "m"
	if Compare([]Departure{a}, []Departure{other}) == nil {
		t.Error("an explanation of another value passed")
	}
}

// FuzzParseDocument reads what may be a document.
func FuzzParseDocument(f *testing.F) {
	f.Add(document)
	f.Add("| `CONFIG_A` | `y`")
	f.Fuzz(func(t *testing.T, content string) {
		explained, err := ParseDocument(content)
		if err != nil {
			return
		}
		for _, departure := range explained {
			if departure.Name == "" || departure.Here == "" || departure.Recommended == "" {
				t.Errorf("%q was read as %v", content, departure)
			}
		}
	})
}
