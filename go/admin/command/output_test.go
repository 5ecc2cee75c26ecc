package command

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestLogText(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "plain, ö": "plain, ö", "\t/go/main.go:7 +0x1d\t": "\t/go/main.go:7 +0x1d\t",
		"a\x1b[2J\tb\r\nc\u202e\xff\x7f\u009b": `a\x1b[2J` + "\t" + `b\r\nc\u202e\xff\x7f\u009b`,
	} {
		if got := LogText(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

// TestWriteJSON: what a terminal would act on is escaped, and reads as what it was.
func TestWriteJSON(t *testing.T) {
	for text, want := range map[string]string{
		"plain ü 語\u00a0😀 <&>":     "\"plain ü 語\u00a0😀 <&>\"\n",
		"\u009b2J\u202e\x7f\t\x1b": `"\u009b2J\u202e\u007f\t\u001b"` + "\n",
		"\U000e0001":               `"\udb40\udc01"` + "\n",
		"broken \xff":              `"broken \ufffd"` + "\n",
		"":                         "\"\"\n",
	} {
		var b bytes.Buffer
		if err := WriteJSON(&b, text); err != nil {
			t.Fatal(err)
		}
		if b.String() != want {
			t.Errorf("%q is written as %q", text, b.String())
		}
		var read string
		if err := json.Unmarshal(b.Bytes(), &read); err != nil || read != strings.ToValidUTF8(text, "\ufffd") {
			t.Errorf("%q is read as %q, %v", text, read, err)
		}
	}
}
