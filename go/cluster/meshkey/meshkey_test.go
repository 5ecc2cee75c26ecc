package meshkey

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestVector: Alice's keys of RFC 7748, section 6.1.
func TestVector(t *testing.T) {
	seed, err := hex.DecodeString("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a")
	if err != nil {
		t.Fatal(err)
	}
	const want = "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"
	made, err := New(bytes.NewReader(seed))
	if err != nil {
		t.Fatal(err)
	}
	for title, k := range map[string]Private{"as it is there": Private(seed), "as it is made": made} {
		if public, err := k.Public(); err != nil || public.String() != want {
			t.Errorf("%s: %s, %v", title, public, err)
		}
	}
	if made[0] != 0x70 || made[31] != 0x6a {
		t.Errorf("made with the ends %x and %x", made[0], made[31])
	}
}

func TestText(t *testing.T) {
	k := Public{1, 31: 0xab}
	text, err := k.MarshalText()
	if err != nil || string(text) != "01"+strings.Repeat("00", 30)+"ab" {
		t.Fatalf("%s, %v", text, err)
	}
	var read Public
	if err := read.UnmarshalText(text); err != nil || read != k || read.IsZero() {
		t.Errorf("%s, %v", read, err)
	}
	for _, bad := range []string{"", "01", strings.ToUpper(string(text)), string(text) + "00", strings.Repeat("g", 64)} {
		if err := read.UnmarshalText([]byte(bad)); err == nil || !strings.Contains(err.Error(), "mesh key") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestSecretsAreNotShown(t *testing.T) {
	k, err := New(bytes.NewReader(bytes.Repeat([]byte{0xa5}, Size)))
	if err != nil {
		t.Fatal(err)
	}
	marshaled, err := json.Marshal(map[string]any{"key": k, "pointer": &k})
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range []string{fmt.Sprint(k, &k), fmt.Sprintf("%+v %#v %x %d %s", k, k, k, k, &k), string(marshaled)} {
		if !strings.Contains(shown, placeholder) || strings.Contains(shown, "a5") || strings.Contains(shown, "165") {
			t.Errorf("shown as %s", shown)
		}
	}
	k.Wipe()
	k.Wipe()
	if !k.IsZero() {
		t.Error("the key is left")
	}
	if _, err := k.Public(); err == nil {
		t.Error("a wiped key has a public one")
	}
	if k, err := New(strings.NewReader("short")); err == nil || !k.IsZero() {
		t.Errorf("a key was made of too few bytes: %v", err)
	}
}
