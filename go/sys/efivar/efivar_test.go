package efivar

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write puts a variable of the specification's into a tree.
func write(t *testing.T, sysfs, name, content string) {
	t.Helper()
	path := filepath.Join(sysfs, "firmware/efi/efivars", name+"-"+Global)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestRead(t *testing.T) {
	sysfs := t.TempDir()
	write(t, sysfs, "BootCurrent", "\x06\x00\x00\x00\x01\x00")
	got, err := Read(sysfs, "BootCurrent", Global, 2)
	if err != nil || got.Attributes != BootServices|RuntimeServices || string(got.Data) != "\x01\x00" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := Read(sysfs, "BootCurrent", Global, 1); !errors.Is(err, ErrSize) {
		t.Errorf("more than the limit: %v", err)
	}
	write(t, sysfs, "Empty", "\x07\x00\x00\x00")
	if got, err := Read(sysfs, "Empty", Global, 0); err != nil || len(got.Data) != 0 || got.Attributes&NonVolatile == 0 {
		t.Errorf("no data: %+v, %v", got, err)
	}
	write(t, sysfs, "Cut", "\x07\x00\x00")
	if _, err := Read(sysfs, "Cut", Global, 9); !errors.Is(err, ErrSize) || !strings.HasPrefix(err.Error(), "read the EFI variable Cut: ") {
		t.Errorf("cut: %v", err)
	}
	if _, err := Read(sysfs, "None", Global, 9); !errors.Is(err, ErrNone) {
		t.Errorf("missing: %v", err)
	}
	write(t, sysfs, "../../../outside", "\x07\x00\x00\x00secret")
	if v, err := Read(sysfs, "../../../outside", Global, 9); err == nil {
		t.Errorf("a name leads out of the folder: %+v", v)
	}
}

func TestBoot(t *testing.T) {
	const on, off = "\x06\x00\x00\x00\x01", "\x06\x00\x00\x00\x00"
	for name, c := range map[string]struct {
		variables map[string]string
		want      Firmware
		fails     bool
	}{
		"on":                   {map[string]string{"SecureBoot": on, "SetupMode": off}, SecureBootOn, false},
		"off":                  {map[string]string{"SecureBoot": off, "SetupMode": off}, SecureBootOff, false},
		"setup mode":           {map[string]string{"SecureBoot": off, "SetupMode": on}, SecureBootOff, false},
		"on in setup mode":     {map[string]string{"SecureBoot": on, "SetupMode": on}, SecureBootOff, false},
		"without Secure Boot":  {map[string]string{"BootCurrent": "\x06\x00\x00\x00\x01\x00"}, SecureBootOff, false},
		"without SetupMode":    {map[string]string{"SecureBoot": on}, Unknown, true},
		"another value":        {map[string]string{"SecureBoot": "\x06\x00\x00\x00\x02", "SetupMode": off}, SecureBootOff, false},
		"too long":             {map[string]string{"SecureBoot": on + "\x01", "SetupMode": off}, Unknown, true},
		"no data":              {map[string]string{"SecureBoot": on[:4], "SetupMode": off}, Unknown, true},
		"cut":                  {map[string]string{"SecureBoot": on[:3], "SetupMode": off}, Unknown, true},
		"SetupMode of no data": {map[string]string{"SecureBoot": on, "SetupMode": on[:4]}, Unknown, true},
	} {
		sysfs := t.TempDir()
		for variable, content := range c.variables {
			write(t, sysfs, variable, content)
		}
		if got, err := Boot(sysfs); got != c.want || (err != nil) != c.fails {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestBootWithoutVariables(t *testing.T) {
	sysfs := t.TempDir()
	if got, err := Boot(sysfs); got != None || err != nil {
		t.Errorf("no UEFI: %q, %v", got, err)
	}
	if err := os.MkdirAll(filepath.Join(sysfs, "firmware/efi"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := Boot(sysfs); got != Unknown || err != nil {
		t.Errorf("no folder of variables: %q, %v", got, err)
	}
	if err := os.Mkdir(variables(sysfs), 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := Boot(sysfs); got != Unknown || err != nil {
		t.Errorf("efivarfs isn't mounted: %q, %v", got, err)
	}
	if err := os.Mkdir(filepath.Join(variables(sysfs), "SecureBoot-"+Global), 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := Boot(sysfs); got != Unknown || err == nil {
		t.Errorf("a variable that can't be read: %q, %v", got, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("\x06\x00\x00\x00\x01"), 1)
	f.Add([]byte("\x06\x00\x00"), 1)
	f.Add([]byte("\x06\x00\x00\x00\x01\x02"), 1)
	f.Fuzz(func(t *testing.T, b []byte, limit int) {
		if limit < 0 {
			return
		}
		v, err := parse(b, limit)
		if err == nil && (len(v.Data) > limit || len(v.Data) != len(b)-attributesSize) || err != nil && v.Data != nil {
			t.Errorf("%+v, %v", v, err)
		}
	})
}
