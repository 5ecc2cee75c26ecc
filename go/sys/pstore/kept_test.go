package pstore

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), KeptName)
	if dumps, err := ReadKept(path); dumps != nil || err != nil {
		t.Errorf("no file has %v, %v", dumps, err)
	}
	dumps := []Dump{
		{Reason: "Panic", Count: 1, ID: 1_700_000_000, Text: "<0>[ 1.0] \"a\\b\" \tö\n", Files: []string{"dmesg-efi_pstore-170000000000101001"}},
		{Reason: "Oops", Count: 2, ID: 3, Text: "x\n", Files: []string{"dmesg-ramoops-3"}},
	}
	keep := func(dumps []Dump) []Dump {
		t.Helper()
		b, err := Encode(dumps)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := ReadKept(path)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := keep(dumps); !reflect.DeepEqual(got, dumps) {
		t.Errorf("%+v became %+v", dumps, got)
	}
	if at, known := dumps[0].Written(); !known || !at.Equal(time.Unix(1_700_000_000, 0)) {
		t.Errorf("written %v, %v", at, known)
	}
	if at, known := dumps[1].Written(); known {
		t.Errorf("ramoops says when: %v", at)
	}
	// The worst text is twice as long when it is written down, and the newest fit.
	var many []Dump
	for i := range 7 {
		many = append(many, Dump{ID: uint64(i), Text: strings.Repeat(`"\`, maxDump/2)})
	}
	if got := keep(many); !reflect.DeepEqual(got, many[3:]) {
		t.Errorf("%d dumps were kept", len(got))
	}
	for _, text := range []string{"", "[", `{"Text":1}`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if dumps, err := ReadKept(path); err == nil {
			t.Errorf("%q is %v", text, dumps)
		}
	}
}
