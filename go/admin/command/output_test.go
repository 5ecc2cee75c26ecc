package command

import "testing"

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
