package canonical

import (
	"bytes"
	"testing"
)

type example struct {
	Name   string   `json:"name"`
	Serial uint64   `json:"serial"`
	List   []string `json:"list"`
	Note   string   `json:"note,omitempty"`
}

func TestReadsWhatIsWritten(t *testing.T) {
	for _, test := range []struct {
		value example
		text  string
	}{
		{example{}, `{"name":"","serial":0,"list":null}`},
		{example{"a<b>&\"\\\n\u2028é", 1<<64 - 1, []string{"x"}, "n"},
			`{"name":"a<b>&\"\\\n\u2028é","serial":18446744073709551615,"list":["x"],"note":"n"}`},
	} {
		text, err := Marshal(test.value)
		if err != nil || string(text) != test.text {
			t.Errorf("%+v is written %s, %v", test.value, text, err)
		}
		var read example
		if err := Unmarshal(text, &read); err != nil || read.Name != test.value.Name || read.Serial != test.value.Serial {
			t.Errorf("%s reads as %+v, %v", text, read, err)
		}
	}
	if _, err := Marshal(make(chan int)); err == nil {
		t.Error("a channel was written")
	}
}

func TestRefuses(t *testing.T) {
	for title, text := range map[string]string{
		"nothing":           ``,
		"cut":               `{"name":"a","serial":1,"list":[]`,
		"trailing bytes":    `{"name":"a","serial":1,"list":[]}x`,
		"two values":        `{"name":"a","serial":1,"list":[]}{}`,
		"line end":          `{"name":"a","serial":1,"list":[]}` + "\n",
		"white space":       `{"name":"a", "serial":1,"list":[]}`,
		"byte order mark":   "\ufeff" + `{"name":"a","serial":1,"list":[]}`,
		"unknown member":    `{"name":"a","serial":1,"list":[],"more":1}`,
		"repeated member":   `{"name":"b","name":"a","serial":1,"list":[]}`,
		"other order":       `{"serial":1,"name":"a","list":[]}`,
		"missing member":    `{"name":"a","serial":1}`,
		"other case":        `{"Name":"a","serial":1,"list":[]}`,
		"null":              `{"name":null,"serial":1,"list":[]}`,
		"empty omitted":     `{"name":"a","serial":1,"list":[],"note":""}`,
		"escape":            `{"name":"\u0061","serial":1,"list":[]}`,
		"not UTF-8":         "{\"name\":\"\xff\",\"serial\":1,\"list\":[]}",
		"lone surrogate":    `{"name":"\ud800","serial":1,"list":[]}`,
		"number with point": `{"name":"a","serial":1.0,"list":[]}`,
		"exponent":          `{"name":"a","serial":1e0,"list":[]}`,
		"negative":          `{"name":"a","serial":-1,"list":[]}`,
		"too large":         `{"name":"a","serial":18446744073709551616,"list":[]}`,
		"string for number": `{"name":"a","serial":"1","list":[]}`,
		"another type":      `[]`,
	} {
		var read example
		if err := Unmarshal([]byte(text), &read); err == nil {
			t.Errorf("%s: read as %+v", title, read)
		}
	}
}

// FuzzUnmarshal must refuse, or read what is written the same way.
func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte(`{"name":"a","serial":1,"list":["x"],"note":"n"}`))
	f.Add([]byte(`{"name":"a","name":"a","serial":1,"list":[]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var read example
		if Unmarshal(text, &read) != nil {
			return
		}
		if again, err := Marshal(read); err != nil || !bytes.Equal(again, text) {
			t.Errorf("%q is written %q, %v", text, again, err)
		}
	})
}
