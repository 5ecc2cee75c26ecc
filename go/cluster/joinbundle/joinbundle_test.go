package joinbundle

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"testing"

	"powercloud.unidatum.com/go/cluster/volumeid"
)

// count fills bytes with numbers that count up from one.
func count(from byte, b []byte) []byte {
	for i := range b {
		b[i] = from + byte(i)
	}
	return b
}

// example returns the bundle of the golden vector.
func example() *Bundle {
	b := &Bundle{
		NodeCertificate: []byte("the node's certificate"), CACertificate: []byte("the CA's certificate"),
		Membership: []byte("the membership list"), Revocations: []byte("the revocation list"),
	}
	count(0, b.NodeKey[:])
	count(32, b.WireGuardKey[:])
	count(64, b.VolumeID[:])
	count(80, b.VolumeKey[:])
	return b
}

func encode(t testing.TB, b *Bundle) []byte {
	t.Helper()
	text, err := b.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// refused fails unless a text is refused, with a word about why and nothing of its
// content.
func refused(t *testing.T, name string, text []byte, why string) {
	t.Helper()
	b, err := Decode(text)
	if b != nil || !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), why) {
		t.Errorf("%s: %v; want %q", name, err, why)
	}
}

// TestVector holds the format still: the golden file was written by the first version
// of this package.
func TestVector(t *testing.T) {
	want, err := os.ReadFile("testdata/bundle-v1.join")
	if err != nil {
		t.Fatal(err)
	}
	if got := encode(t, example()); !bytes.Equal(got, want) {
		t.Errorf("the bundle is\n%swant\n%s", got, want)
	}
	before := bytes.Clone(want)
	got, err := Decode(want)
	if err != nil || !reflect.DeepEqual(got, example()) {
		t.Errorf("the old bundle reads as %+v, %v", got, err)
	}
	if !bytes.Equal(want, before) {
		t.Error("reading has changed the text")
	}
}

func TestLargest(t *testing.T) {
	b := example()
	for field, size := range map[*[]byte]int{
		&b.NodeCertificate: MaxCertificate, &b.CACertificate: MaxCertificate, &b.Membership: MaxList, &b.Revocations: MaxList,
	} {
		*field = count(1, make([]byte, size))
	}
	text := encode(t, b)
	if len(text) > MaxSize || len(text) < MaxSize*9/10 {
		t.Errorf("the largest bundle has %d bytes, the limit is %d", len(text), MaxSize)
	}
	if got, err := Decode(text); err != nil || !reflect.DeepEqual(got, b) {
		t.Errorf("the largest bundle: %v", err)
	}
	for field, name := range map[*[]byte]string{
		&b.NodeCertificate: "node_certificate", &b.CACertificate: "ca_certificate", &b.Membership: "membership", &b.Revocations: "revocations",
	} {
		whole := *field
		for _, wrong := range [][]byte{append(bytes.Clone(whole), 1), nil} {
			*field = wrong
			if _, err := b.Encode(); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), name+" has ") {
				t.Errorf("%d bytes: %v", len(wrong), err)
			}
			refused(t, name, wrap(b.marshal()), name+" has ")
		}
		*field = whole
	}
	refused(t, "a long text", append(text, bytes.Repeat([]byte("A"), MaxSize)...), fmt.Sprintf("more than %d bytes", MaxSize))
}

func TestWipedBundlesArentWritten(t *testing.T) {
	b := example()
	b.Wipe()
	b.Wipe()
	if b.NodeKey != (Key{}) || b.WireGuardKey != (Key{}) || b.VolumeKey != (Key{}) {
		t.Error("a key is left")
	}
	if _, err := b.Encode(); !errors.Is(err, ErrInvalid) {
		t.Errorf("a wiped bundle was written: %v", err)
	}
	for name, wipe := range map[string]func(*Bundle){
		"node_key":      func(b *Bundle) { b.NodeKey = Key{} },
		"wireguard_key": func(b *Bundle) { b.WireGuardKey = Key{} },
		"volume_id":     func(b *Bundle) { b.VolumeID = volumeid.ID{} },
		"volume_key":    func(b *Bundle) { b.VolumeKey = Key{} },
	} {
		b := example()
		wipe(b)
		refused(t, name, wrap(b.marshal()), name+" is all zeros")
	}
}

func TestLineEnds(t *testing.T) {
	text := string(encode(t, example()))
	for name, changed := range map[string]string{
		"none at the end":         strings.TrimSuffix(text, "\n"),
		"CR LF":                   strings.ReplaceAll(text, "\n", "\r\n"),
		"CR LF, none at the end":  strings.TrimSuffix(strings.ReplaceAll(text, "\n", "\r\n"), "\r\n"),
		"CR LF, LF at the end":    strings.Replace(text, "\n", "\r\n", 1),
		"CR LF, CR alone remains": strings.TrimSuffix(strings.ReplaceAll(text, "\n", "\r\n"), "\n"),
	} {
		if got, err := Decode([]byte(changed)); err != nil || !reflect.DeepEqual(got, example()) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEveryPieceIsRefused(t *testing.T) {
	text := encode(t, example())
	for n := range len(text) - 1 {
		refused(t, fmt.Sprintf("the first %d bytes", n), text[:n], "")
		if n > 0 {
			refused(t, fmt.Sprintf("without the first %d bytes", n), text[n:], "first line")
		}
	}
}

func TestEveryAlteredByteIsRefused(t *testing.T) {
	text := encode(t, example())
	last := len(text) - 1
	for i := range text {
		for _, flip := range []byte{1, 2, 4, 8, 16, 32, 64, 128} {
			altered := bytes.Clone(text)
			altered[i] ^= flip
			if i == last && altered[i] == '\r' {
				continue
			}
			refused(t, fmt.Sprintf("byte %d ^ %d", i, flip), altered, "")
		}
	}
}

// wrap makes a bundle's text of JSON.
func wrap(content []byte) []byte {
	return []byte(firstLine + "\n" + base64.StdEncoding.EncodeToString(content) + "\n")
}

// sum puts the right checksum at the end of JSON that ends with a comma.
func sum(content string) []byte {
	return fmt.Appendf(nil, `%s"sha256":"%x"}`, content, sha256.Sum256([]byte(content)))
}

func TestJSON(t *testing.T) {
	whole := string(example().marshal())
	content := whole[:len(whole)-sumSize]
	if !strings.HasSuffix(content, `",`) || string(sum(content)) != whole {
		t.Fatal("the test takes the JSON apart in another way than it is put together")
	}
	replace := func(old, with string) []byte {
		changed := strings.Replace(content, old, with, 1)
		if changed == content {
			t.Fatalf("there is no %q in the JSON", old)
		}
		return sum(changed)
	}
	const key = `"volume_key":"UFFSU1RVVldYWVpbXF1eX2BhYmNkZWZnaGlqa2xtbm8="`
	const form = "its JSON isn't as bundles have it"
	for name, c := range map[string]struct {
		json []byte
		why  string
	}{
		"an unknown field":       {replace(`"membership"`, `"more":"1","membership"`), form},
		"a doubled field":        {replace(key, key+","+key), form},
		"another one before":     {replace(key, `"volume_key":"AAAA",`+key), form},
		"another order":          {replace(key+`,"membership":"dGhlIG1lbWJlcnNoaXAgbGlzdA=="`, `"membership":"dGhlIG1lbWJlcnNoaXAgbGlzdA==",`+key), form},
		"a missing field":        {replace(key+",", ""), "volume_key has 0 bytes instead of 32"},
		"null":                   {replace(key, `"volume_key":null`), "volume_key has 0 bytes instead of 32"},
		"a field of another way": {replace(`"volume_key"`, `"Volume_Key"`), form},
		"a blank":                {replace(`"volume_key":`, `"volume_key": `), form},
		"an escape":              {replace(`"volume_key"`, `"volume\u005fkey"`), form},
		"an escaped value":       {replace(`:"UFFS`, `:"\u0055FFS`), form},
		"a line break":           {replace(`:"UFFS`, `:"UFFS\n`), form},
		"bits left over":         {replace(`bm8="`, `bm9="`), form},
		"a short key":            {replace(key, `"volume_key":"UFFS"`), "volume_key has 3 bytes instead of 32"},
		"a long key":             {replace(key, `"volume_key":"UFFSU1RVVldYWVpbXF1eX2BhYmNkZWZnaGlqa2xtbm9w"`), "volume_key has 33 bytes instead of 32"},
		"a number":               {replace(key, `"volume_key":1234567890`), "its JSON can't be read"},
		"no base64":              {replace(`:"UFFS`, `:"!FFS`), "its JSON can't be read"},
		"a short ID":             {replace(`"volume_id":"40`, `"volume_id":"`), "volume_id isn't 32 hexadecimal digits"},
		"capital digits":         {replace(`4a4b`, `4A4b`), form},
		"no digits":              {replace(`4a4b`, `4g4b`), "volume_id isn't 32 hexadecimal digits"},
		"no checksum":            {[]byte(strings.TrimSuffix(content, ",") + "}"), form},
		"another checksum":       {[]byte(content + string(sum("{"))[1:]), "its checksum is wrong"},
		"something behind":       {[]byte(whole + "{}"), "its JSON can't be read"},
		"a blank behind":         {[]byte(whole + " "), form},
		"a list":                 {[]byte("[" + whole + "]"), "its JSON can't be read"},
		"nothing":                {[]byte("{}"), "node_key has 0 bytes instead of 32"},
		"many brackets":          {bytes.Repeat([]byte("["), 40_000), "its JSON can't be read"},
	} {
		refused(t, name, wrap(c.json), c.why)
	}
}

func TestTexts(t *testing.T) {
	text := string(encode(t, example()))
	line := strings.TrimPrefix(text, firstLine+"\n")
	for name, c := range map[string]struct{ text, why string }{
		"empty":                  {"", "its first line isn't"},
		"another version":        {"#powercloud-join v2\n" + line, "another version than v1"},
		"a longer version":       {"#powercloud-join v10\n" + line, "another version than v1"},
		"no version":             {"#powercloud-join\n" + line, "its first line isn't"},
		"a blank more":           {"#powercloud-join  v1\n" + line, "its first line isn't"},
		"a blank at the end":     {"#powercloud-join v1 \n" + line, "another version than v1"},
		"the first line alone":   {firstLine + "\n", "nothing after its first line"},
		"without a line end":     {firstLine, "nothing after its first line"},
		"an empty line":          {firstLine + "\n\n" + line, "more than two lines"},
		"an empty line after":    {text + "\n", "more than two lines"},
		"two bundles":            {text + text, "more than two lines"},
		"wrapped":                {firstLine + "\n" + line[:76] + "\n" + line[76:], "more than two lines"},
		"a CR within":            {firstLine + "\n" + line[:76] + "\r" + line[76:], "more than two lines"},
		"a blank after":          {strings.TrimSuffix(text, "\n") + " ", "isn't base64"},
		"the URL's alphabet":     {firstLine + "\n" + strings.ReplaceAll(line, "M", "_"), "isn't base64"},
		"a byte order mark":      {"\ufeff" + text, "its first line isn't"},
		"white space before":     {"\n " + text, "its first line isn't"},
		"CR as a line end":       {strings.ReplaceAll(text, "\n", "\r"), "another version than v1"},
		"base64 of base64":       {string(wrap([]byte(line))), "its JSON can't be read"},
		"a padding that is more": {strings.TrimSuffix(text, "\n") + "====", "isn't base64"},
	} {
		refused(t, name, []byte(c.text), c.why)
		// All but what doesn't begin with the marker are meant to be bundles.
		if want := c.text != ""; LooksLike([]byte(c.text)) != want {
			t.Errorf("%s: is it meant to be a bundle? want %v", name, want)
		}
	}
	for _, other := range []string{"#!/bin/sh\n", "#cloud-config\n", "powercloud-join v1", "Content-Type: multipart/mixed\n\n" + text, "\x1f\x8b\x08"} {
		if LooksLike([]byte(other)) {
			t.Errorf("%q is taken for a bundle", other)
		}
	}
}

func TestKeysArentPrinted(t *testing.T) {
	b := example()
	var log bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(handler).Info("a bundle", "bundle", b, "copy", *b, "key", b.NodeKey, "pointer", &b.VolumeKey)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "% x"} {
		fmt.Fprintf(&log, verb+"\n", b)
		fmt.Fprintf(&log, verb+"\n", *b)
		fmt.Fprintf(&log, verb+"\n", b.WireGuardKey)
	}
	for _, key := range []Key{b.NodeKey, b.WireGuardKey, b.VolumeKey} {
		raw := key[8:12]
		for _, spelled := range []string{
			fmt.Sprintf("%x", raw), fmt.Sprintf("%X", raw), fmt.Sprintf("% x", raw), strings.Trim(fmt.Sprintf("%q", raw), `"`), string(raw),
			strings.Trim(fmt.Sprint(raw), "[]"), strings.ReplaceAll(strings.Trim(fmt.Sprint(raw), "[]"), " ", ","),
			base64.StdEncoding.EncodeToString(key[9:18]), strings.Trim(fmt.Sprintf("%#v", raw), "[]byte{}"),
		} {
			if strings.Contains(log.String(), spelled) {
				t.Errorf("%q, a piece of a key, is in\n%s", spelled, &log)
			}
		}
	}
	if !strings.Contains(log.String(), placeholder) || !strings.Contains(log.String(), "404142434445464748494a4b4c4d4e4f") {
		t.Errorf("the test printed nothing:\n%s", &log)
	}
}

// seeds returns texts to begin with.
func seeds(t testing.TB) [][]byte {
	text := encode(t, example())
	return [][]byte{
		text, bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n")), text[:len(text)/2], []byte("#!/bin/sh\n"),
		wrap([]byte("{}")), wrap(example().marshal()[:100]), []byte("#powercloud-join v2\nAAAA\n"),
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(firstLine + "\ne30=\n"))
	for _, seed := range seeds(f) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		before := bytes.Clone(text)
		b, err := Decode(text)
		if !bytes.Equal(text, before) {
			t.Fatal("reading has changed the text")
		}
		if err != nil {
			if b != nil || !errors.Is(err, ErrInvalid) {
				t.Fatalf("%v, %v", b, err)
			}
			return
		}
		again, err := b.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if want := bytes.TrimSpace(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))); !bytes.Equal(bytes.TrimSpace(again), want) {
			t.Fatalf("it is written again as\n%s", again)
		}
	})
}

// FuzzUnmarshal reaches what the base64 and the checksum keep FuzzDecode from.
func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte("{}"))
	f.Add(example().marshal())
	f.Fuzz(func(t *testing.T, content []byte) {
		b, err := unmarshal(content)
		if err != nil {
			if b != nil || !errors.Is(err, ErrInvalid) {
				t.Fatalf("%v, %v", b, err)
			}
			return
		}
		if got, err := Decode(encode(t, b)); err != nil || !reflect.DeepEqual(got, b) {
			t.Fatalf("%v", err)
		}
	})
}
