package volumeid

import (
	"strings"
	"testing"
)

func TestID(t *testing.T) {
	const written = "0001020304050607f8f9fafbfcfdfeff"
	var id ID
	if err := id.UnmarshalText([]byte(written)); err != nil || id.String() != written {
		t.Errorf("it was read as %s, %v", id, err)
	}
	if text, err := id.MarshalText(); err != nil || string(text) != written {
		t.Errorf("it was written as %s, %v", text, err)
	}
	for _, bad := range []string{"", written[1:], written + "0", strings.ToUpper(written), strings.Replace(written, "0", "g", 1)} {
		if err := new(ID).UnmarshalText([]byte(bad)); err == nil || err.Error() != "a volume ID is 32 lower-case hexadecimal digits" {
			t.Errorf("%q gave the error %v", bad, err)
		}
	}
}
