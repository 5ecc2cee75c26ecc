package message_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/api/route"
)

// requests returns a maker of the request of every route that has one.
func requests(t testing.TB) map[string]func() any {
	t.Helper()
	all := make(map[string]func() any)
	call(all, route.GetOffer())
	call(all, route.Enroll())
	call(all, route.Unlock())
	call(all, route.PutMembership())
	call(all, route.PutRevocations())
	call(all, route.PutCertificate())
	call(all, route.Power())
	call(all, route.Erase())
	call(all, route.Ping())
	all[route.Logs().Name] = func() any { return new(message.Logs) }
	for _, r := range route.All() {
		if _, ok := all[r.Name]; ok != (r.MaxRequest > 0) {
			t.Fatalf("the request %q is missing here, or isn't one", r.Name)
		}
	}
	return all
}

func call[Request, Answer any](all map[string]func() any, c route.Call[Request, Answer]) {
	all[c.Name] = func() any { return new(Request) }
}

// TestRequestNames states of every request what a strict reader counts on.
func TestRequestNames(t *testing.T) {
	for name, empty := range requests(t) {
		request := empty()
		fill(request)
		text, err := json.Marshal(request)
		if err != nil {
			t.Fatal(err)
		}
		if err := message.Decode(text, empty(), true); err != nil {
			t.Errorf("%s: %s can't be read: %v", name, text, err)
		}
	}
}

// TestStrict reads requests that a strict reader refuses, and another one may take.
func TestStrict(t *testing.T) {
	const good = `{"volume":"000102030405060708090a0b0c0d0e0f","volume_key":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="}`
	for _, text := range []string{good, " " + strings.ReplaceAll(good, ":", " :\n") + "\n", strings.ReplaceAll(good, "volume_key", `volume\u005fkey`)} {
		var u message.Unlock
		if err := message.Decode([]byte(text), &u, true); err != nil || u.VolumeKey[31] != 31 || u.Volume[1] != 1 {
			t.Errorf("%s: %v", text, err)
		}
	}
	end := strings.TrimSuffix(good, "}")
	for name, test := range map[string]struct{ text, want string }{
		"nothing":          {"", "EOF"},
		"null":             {"null", "it has a null"},
		"a null inside":    {`{"volume":null}`, "it has a null"},
		"no key":           {`{"volume_key":null}`, "a key has 32 bytes"},
		"a short key":      {`{"volume_key":"AAEC"}`, "a key has 32 bytes"},
		"a long key":       {`{"volume_key":"` + strings.Repeat("AAAA", 11) + `"}`, "a key has 32 bytes"},
		"no base64":        {`{"volume_key":"` + strings.Repeat("%", 44) + `"}`, "illegal base64"},
		"a number":         {`{"volume_key":1}`, "cannot unmarshal"},
		"an array":         {`[` + good + `]`, "cannot unmarshal"},
		"unknown":          {end + `,"x":1}`, "unknown field"},
		"twice":            {end + `,"volume":"000102030405060708090a0b0c0d0e0f"}`, "it has a member twice"},
		"twice by escape":  {end + `,"\u0076olume":"000102030405060708090a0b0c0d0e0f"}`, "it has a member twice"},
		"another case":     {strings.Replace(good, "volume", "Volume", 1), "other letters"},
		"twice by case":    {end + `,"VOLUME":"000102030405060708090a0b0c0d0e0f"}`, "other letters"},
		"a Kelvin sign":    {strings.Replace(good, "volume_key", "volume_\u212aey", 1), "other letters"},
		"no UTF-8":         {"{\"volume\xff\":1}", ""},
		"something behind": {good + good, "behind"},
		"a brace behind":   {good + "}", "behind"},
		"deep":             {strings.Repeat("[", 100_000), ""},
		"deep in a member": {`{"volume":` + strings.Repeat(`{"a":`, 100_000), ""},
	} {
		if err := message.Decode([]byte(test.text), new(message.Unlock), true); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	bad := []byte("{\"target\":\"\xff\"}")
	if err := message.Decode(bad, new(message.Ping), true); err == nil {
		t.Error("no UTF-8 was read")
	}
	// Answers may gain members.
	if err := message.Decode([]byte(`{"serial":1,"more":null}`), new(message.Serial), false); err != nil {
		t.Errorf("an answer with more: %v", err)
	}
}

// TestKeyIsNotShown prints what has a key in every way.
func TestKeyIsNotShown(t *testing.T) {
	var key message.Key
	for i := range key {
		key[i] = 0xa7
	}
	enrollment, unlock := message.Enrollment{Name: "n", VolumeKey: key}, message.Unlock{VolumeKey: key}
	var shown bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o", "%b", "%t"} {
		for _, v := range []any{key, &key, enrollment, &enrollment, unlock, &unlock, []message.Key{key}, map[string]any{"k": key}} {
			fmt.Fprintf(&shown, verb+"\n", v)
		}
	}
	for _, handler := range []slog.Handler{slog.NewTextHandler(&shown, nil), slog.NewJSONHandler(&shown, nil)} {
		slog.New(handler).Info("a", "key", key, "pointer", &key)
	}
	for _, secret := range []string{"a7a7", "A7A7", "167", "0247", "247 247", "10100111", "p6en", "\xa7"} {
		if strings.Contains(shown.String(), secret) {
			t.Errorf("%q is shown in %s", secret, shown.String())
		}
	}
	enrollment.Wipe()
	unlock.Wipe()
	if enrollment.VolumeKey != (message.Key{}) || unlock.VolumeKey != (message.Key{}) {
		t.Error("a key is left")
	}
}

// FuzzDecode reads any bytes as the request of any route.
func FuzzDecode(f *testing.F) {
	entries, err := os.ReadDir(filepath.Join("testdata", "fuzz", f.Name()))
	if err != nil || len(entries) == 0 {
		f.Fatalf("no seed corpus in testdata/fuzz/%s: %v", f.Name(), err)
	}
	all := requests(f)
	routes := route.All()
	f.Fuzz(func(t *testing.T, which uint8, text []byte) {
		empty := all[routes[int(which)%len(routes)].Name]
		if empty == nil {
			return
		}
		request := empty()
		if message.Decode(text, request, true) != nil {
			return
		}
		// Each member is there once and under its own name.
		var members map[string]json.RawMessage
		if err := json.Unmarshal(text, &members); err != nil {
			t.Fatalf("%q isn't one object: %v", text, err)
		}
		for name := range members {
			if !hasMember(reflect.TypeOf(request).Elem(), name) {
				t.Fatalf("%q has %q", text, name)
			}
		}
		fill(request)
		again, err := json.Marshal(request)
		if err != nil {
			t.Fatal(err)
		}
		second := empty()
		if err := message.Decode(again, second, true); err != nil || !reflect.DeepEqual(second, request) {
			t.Fatalf("%q was read, and %q is %+v: %v", text, again, second, err)
		}
	})
}

// hasMember reports whether a struct has a member of a name in JSON.
func hasMember(s reflect.Type, name string) bool {
	for i := range s.NumField() {
		if tag, _, _ := strings.Cut(s.Field(i).Tag.Get("json"), ","); tag == name {
			return true
		}
	}
	return false
}

// fill replaces bytes that a request doesn't have, which are written as null, by none.
func fill(request any) {
	s := reflect.ValueOf(request).Elem()
	for i := range s.NumField() {
		if f := s.Field(i); f.Kind() == reflect.Slice && f.IsNil() {
			f.Set(reflect.MakeSlice(f.Type(), 0, 0))
		}
	}
}
