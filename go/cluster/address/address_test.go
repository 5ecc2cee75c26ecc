package address

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for given, want := range map[string]string{
		"192.0.2.10":              "192.0.2.10:7443",
		"192.0.2.10:1":            "192.0.2.10:1",
		"192.0.2.10:65535":        "192.0.2.10:65535",
		"2001:DB8::0:1":           "[2001:db8::1]:7443",
		"[2001:db8::1]":           "[2001:db8::1]:7443",
		"[2001:db8::1]:51820":     "[2001:db8::1]:51820",
		"::1":                     "[::1]:7443",
		"::ffff:192.0.2.10":       "192.0.2.10:7443",
		"[::ffff:192.0.2.10]:9":   "192.0.2.10:9",
		"localhost":               "localhost:7443",
		"Home.Example.NET.":       "home.example.net:7443",
		"home.example.net:51820":  "home.example.net:51820",
		"a_b.example":             "a_b.example:7443",
		"1.2.3.4a":                "1.2.3.4a:7443",
		"x":                       "x:7443",
		"xn--bcher-kva.example:8": "xn--bcher-kva.example:8",
	} {
		a, err := Parse(given, APIPort)
		if err != nil || a.String() != want {
			t.Errorf("%q is read as %s, %v; want %s", given, a, err, want)
			continue
		}
		var again Address
		if err := again.UnmarshalText([]byte(want)); err != nil || again != a {
			t.Errorf("%s doesn't read back: %v", want, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, bad := range []string{
		"", ":", ":7443", "a:", "a:0", "a:65536", "a:-1", "a:+1", "a:01", "a:http", "a:1:2", "[]:1", "[a]:1", "[a]", "[192.0.2.10]:1",
		"[2001:db8::1", "2001:db8::1]", "[2001:db8::1]1", "[2001:db8::1]:", "2001:db8::1:7443:1:1:1:1:1", "fe80::1%eth0", "[fe80::1%eth0]:1",
		"0.0.0.0", "::", "224.0.0.1", "ff02::1", "255.255.255.255", "::ffff:0.0.0.0", "256.1.1.1", "1.2.3", "1", "192.0.2.010", ".", "..", "a..b", ".a",
		"-a", "a-", "a b", "a/b", "https://a", "a\n", "a\x00", "ä", "a@b", "\xff", "[[::1]]:1",
		strings.Repeat("a", 64), strings.Repeat("a.", 126) + "ab", strings.Repeat("a", 1<<16),
	} {
		if a, err := Parse(bad, APIPort); err == nil {
			t.Errorf("%q is read as %s", bad, a)
		} else if len(err.Error()) > 1500 || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.20q: the error has %d bytes", bad, len(err.Error()))
		}
	}
	for _, bad := range []string{"", "192.0.2.10", "2001:db8::1", "A:1", "a.:1", "[2001:DB8::1]:1", "[::ffff:192.0.2.10]:1"} {
		var a Address
		if err := a.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q is read as %s", bad, a)
		}
	}
}

func TestProperties(t *testing.T) {
	for given, local := range map[string]bool{
		"localhost": true, "a.localhost": true, "127.0.0.1": true, "127.9.9.9": true, "::1": true, "::ffff:127.0.0.1": true,
		"192.0.2.10": false, "home.example.net": false, "notlocalhost": false,
	} {
		a, err := Parse(given, APIPort)
		if err != nil || a.IsLocal() != local || a.IsZero() || a.Port() != APIPort {
			t.Errorf("%s: %+v, local %v, %v", given, a, a.IsLocal(), err)
		}
		if b := a.WithPort(MeshPort); b.Host() != a.Host() || b.Port() != MeshPort {
			t.Errorf("%s with another port is %s", a, b)
		}
	}
	if none := (Address{}); !none.IsZero() || none.String() != "" || !none.WithPort(1).IsZero() || none.IsLocal() {
		t.Error("no address is one")
	}
}

// FuzzParse must refuse, or read what is written the same way.
func FuzzParse(f *testing.F) {
	f.Add("192.0.2.10:7443")
	f.Add("[2001:db8::1]:51820")
	f.Add("Home.Example.NET.")
	f.Fuzz(func(t *testing.T, s string) {
		a, err := Parse(s, APIPort)
		if err != nil {
			if !a.IsZero() {
				t.Errorf("%q: %s and %v", s, a, err)
			}
			return
		}
		if again, err := Parse(a.String(), 0); err != nil || again != a {
			t.Errorf("%q is %s, and that is %s, %v", s, a, again, err)
		}
	})
}
