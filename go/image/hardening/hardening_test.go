package hardening

import (
	"slices"
	"strings"
	"testing"

	"powercloud.unidatum.com/go/image/kconfig"
)

// best is a configuration that follows every recommendation.
func best(architecture string) kconfig.Config {
	config := kconfig.Config{}
	for _, r := range Recommendations() {
		if r.Architecture == "" || r.Architecture == architecture {
			config[r.Symbol] = r.Value
		}
	}
	return config
}

func TestDepartures(t *testing.T) {
	for _, architecture := range []string{"amd64", "arm64"} {
		config := best(architecture)
		if found := Departures(config, architecture); len(found) > 0 {
			t.Errorf("the best configuration departs: %v", found)
		}
		config["PANIC_TIMEOUT"] = "10"
		delete(config, "VMAP_STACK")
		config["DEVMEM"] = "y"
		delete(config, "STRICT_DEVMEM")
		want := []Departure{
			{"VMAP_STACK", "y", "n", architecture},
			{"DEVMEM", "n", "y", architecture},
			{"PANIC_TIMEOUT", "-1", "10", architecture},
			{"STRICT_DEVMEM", "y", "n", architecture},
		}
		if found := Departures(config, architecture); !slices.Equal(found, want) {
			t.Errorf("the departures are %v, want %v", found, want)
		}
		if found := Departures(kconfig.Config{}, architecture); len(found) < 80 {
			t.Errorf("an empty configuration has only %d departures", len(found))
		}
	}
	if found := Departures(best("amd64"), "arm64"); len(found) == 0 {
		t.Error("both architectures have the same recommendations")
	}
}

func TestRecommendationsAreThereOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Recommendations() {
		for _, architecture := range []string{"amd64", "arm64"} {
			if r.Architecture != "" && r.Architecture != architecture {
				continue
			}
			if key := architecture + " " + r.Symbol; seen[key] {
				t.Errorf("%s is there twice", key)
			} else {
				seen[key] = true
			}
		}
	}
}

const document = "# A page\n\n| setting | recommended |\n| --- | --- |\n" +
	"| `CONFIG_A` | `y` | `n` | amd64, arm64 | A reason that says something. |\n" +
	"| `CONFIG_B` | `-1` | `10` | arm64 | Another reason, as good as that. |\n"

func TestParseDocument(t *testing.T) {
	explained, err := ParseDocument(document)
	want := []Departure{{"A", "y", "n", "amd64"}, {"A", "y", "n", "arm64"}, {"B", "-1", "10", "arm64"}}
	if err != nil || !slices.Equal(explained, want) {
		t.Errorf("it was read as %v, %v, want %v", explained, err, want)
	}
	for bad, want := range map[string]string{
		"| `CONFIG_C` | `y` | `n` | amd64 | Short. |":                                          "line 7 isn't a row",
		"| `CONFIG_C` | `y` | `n` | amd64 |":                                                   "line 7 isn't a row",
		"| `CONFIG_C` | y | n | amd64 | A reason that says something. |":                       "line 7 isn't a row",
		"| `CONFIG_C` | `y` | `n` | arm64, amd64 | A reason that says something. |":            "line 7 isn't a row",
		"| `CONFIG_A` | `y` | `n` | arm64 | A reason that says something. |":                   "line 7 explains CONFIG_A again",
		strings.Repeat("| `CONFIG_C` | `y` | `n` | arm64 | A reason that says it. |\n", 1<<15): "larger than",
	} {
		if _, err := ParseDocument(document + bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: the error is %v, want one with %q", bad, err, want)
		}
	}
}

func TestCompare(t *testing.T) {
	a, b := Departure{"A", "y", "n", "amd64"}, Departure{"B", "n", "y", "arm64"}
	if err := Compare([]Departure{a, b}, []Departure{b, a}); err != nil {
		t.Error(err)
	}
	err := Compare([]Departure{a}, []Departure{b})
	want := "amd64: CONFIG_A is n where y is recommended, and no row explains that\n" +
		"a row explains arm64: CONFIG_B is y where n is recommended, which isn't so"
	if err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
	// The same setting with another value is not what was explained.
	other := a
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
			if departure.Symbol == "" || departure.Here == "" || departure.Recommended == "" {
				t.Errorf("%q was read as %v", content, departure)
			}
		}
	})
}
