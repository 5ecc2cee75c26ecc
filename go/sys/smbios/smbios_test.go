package smbios

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCloud(t *testing.T) {
	const azure = "7783-7084-3265-9085-8269-3286-77"
	for name, c := range map[string]struct {
		strings Strings
		want    Cloud
	}{
		"EC2, Nitro":         {Strings{"Amazon EC2", "t4g.micro", "Amazon EC2"}, AWS},
		"EC2, metal":         {Strings{"Amazon EC2", "m5.metal", "Amazon EC2"}, AWS},
		"EC2, Xen":           {Strings{"Xen", "HVM domU", ""}, None},
		"Compute Engine":     {Strings{"Google", "Google Compute Engine", ""}, GoogleCloud},
		"a Chromebook":       {Strings{"Google", "Eve", ""}, None},
		"Azure":              {Strings{"Microsoft Corporation", "Virtual Machine", azure}, Azure},
		"Hyper-V":            {Strings{"Microsoft Corporation", "Virtual Machine", "3512-2873-1209"}, None},
		"QEMU":               {Strings{"QEMU", "Standard PC (Q35 + ICH9, 2009)", ""}, None},
		"a name within":      {Strings{"Not Amazon EC2", "My Google Compute Engine", "x" + azure}, None},
		"other letters":      {Strings{"AMAZON EC2", "google compute engine", ""}, None},
		"nothing":            {},
		"another's vendor":   {Strings{"Dell Inc.", "Amazon EC2", "Amazon EC2"}, None},
		"a tag as a product": {Strings{"", azure, ""}, None},
	} {
		if got := c.strings.Cloud(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// write puts a file below a folder.
func write(t *testing.T, root, name, content string) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// structure is a structure with fields after its handle, and strings.
func structure(kind byte, fields string, texts ...string) string {
	s := string([]byte{kind, byte(4 + len(fields)), 0, 1}) + fields
	for _, text := range texts {
		s += text + "\x00"
	}
	if len(texts) == 0 {
		s += "\x00"
	}
	return s + "\x00"
}

func TestReadAttributes(t *testing.T) {
	sysfs := t.TempDir()
	write(t, sysfs, "class/dmi/id/sys_vendor", "Amazon EC2\n")
	write(t, sysfs, "class/dmi/id/product_name", " t3.micro \n")
	write(t, sysfs, "class/dmi/id/chassis_asset_tag", "\n")
	// These are the same machine's, and aren't needed.
	write(t, sysfs, "firmware/dmi/entries/1-0/raw", structure(1, "\x01\x02", "another", "one"))
	got, err := Read(sysfs)
	if want := (Strings{Vendor: "Amazon EC2", Product: "t3.micro"}); got != want || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestReadStructures(t *testing.T) {
	sysfs := t.TempDir()
	write(t, sysfs, "firmware/dmi/entries/1-0/raw", structure(1, "\x02\x01\x00", "Virtual Machine", "Microsoft Corporation"))
	write(t, sysfs, "firmware/dmi/entries/3-0/raw", structure(3, "\x01\x03\x00\x00\x02", "Microsoft", "7783-7084-3265-9085-8269-3286-77"))
	got, err := Read(sysfs)
	want := Strings{"Microsoft Corporation", "Virtual Machine", "7783-7084-3265-9085-8269-3286-77"}
	if got != want || err != nil || got.Cloud() != Azure {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestNoSMBIOS(t *testing.T) {
	if got, err := Read(t.TempDir()); got != (Strings{}) || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestOneStringCantBeRead(t *testing.T) {
	sysfs := t.TempDir()
	write(t, sysfs, "class/dmi/id/sys_vendor/a folder", "")
	write(t, sysfs, "class/dmi/id/product_name", "Google Compute Engine\n")
	got, err := Read(sysfs)
	if got.Cloud() != GoogleCloud || err == nil || !strings.HasPrefix(err.Error(), "read sys_vendor of SMBIOS: ") {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestBounds(t *testing.T) {
	sysfs := t.TempDir()
	write(t, sysfs, "class/dmi/id/sys_vendor", strings.Repeat("\x1b[31m", 100_000))
	got, err := Read(sysfs)
	if len(got.Vendor) != maxString || strings.ContainsAny(got.Vendor, "\x1b") || err != nil {
		t.Errorf("%d bytes, %v", len(got.Vendor), err)
	}
}

func TestDamagedStructures(t *testing.T) {
	good := structure(1, "\x01\x02", "one", "two")
	if got, err := structureString([]byte(good), 1, 5); got != "two" || err != nil {
		t.Fatalf("%q, %v", got, err)
	}
	for name, b := range map[string]string{
		"empty":               "",
		"another type":        "\x02" + good[1:],
		"too short a length":  "\x01\x03" + good[2:],
		"too long a length":   "\x01\xff" + good[2:],
		"cut in a string":     good[:len(good)-3],
		"no such string":      structure(1, "\x01\x03", "one", "two"),
		"no strings":          structure(1, "\x01\x01"),
		"an endless number":   structure(1, "\x01\xff", "one", "two"),
		"cut after the field": good[:6],
	} {
		if got, err := structureString([]byte(b), 1, 5); !errors.Is(err, errStructure) || got != "" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	// SMBIOS 2.0 has no asset tag.
	if got, err := structureString([]byte(structure(3, "\x01", "maker")), 3, 8); got != "" || err != nil {
		t.Errorf("a short structure: %q, %v", got, err)
	}
}

func FuzzStructureString(f *testing.F) {
	f.Add([]byte(structure(1, "\x01\x02", "one", "two")), 5)
	f.Add([]byte(structure(3, "\x01\x03\x00\x00\x02", "Microsoft", "a tag")), 8)
	f.Add([]byte(structure(1, "\x00\x00")), 4)
	f.Fuzz(func(t *testing.T, b []byte, offset int) {
		if len(b) == 0 || offset < 4 || offset > 255 {
			return
		}
		text, err := structureString(b, b[0], offset)
		if err != nil && text != "" || len(text) > maxString || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("%q, %v", text, err)
		}
	})
}
