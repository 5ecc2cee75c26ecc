package reproducible_test

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"

	"powercloud.unidatum.com/go/image/secureboot"
)

// checkSigning makes two keys with tools/sb-keygen, and gives one to the build by
// variables of the environment, and the other, in the workspace, by flags.
func (p place) checkSigning(t *testing.T) {
	t.Helper()
	const folder, target = "keys", "//disk/tests:keyed_efi_amd64"
	outside := filepath.Join(filepath.Dir(p.workspace), folder)
	inside := filepath.Join(p.workspace, folder)
	var certificates []*x509.Certificate
	for _, keys := range []string{outside, inside} {
		p.run(t, nil, filepath.Dir(keys), filepath.Join(p.workspace, "tools", "sb-keygen"), folder)
		content, err := os.ReadFile(filepath.Join(keys, secureboot.CertificateFile))
		if err != nil {
			t.Fatal(err)
		}
		certificate, err := secureboot.ParseCertificate(content)
		if err != nil {
			t.Fatal(err)
		}
		certificates = append(certificates, certificate)
	}
	check := func(by string, right, wrong *x509.Certificate) {
		t.Helper()
		image, err := os.ReadFile(p.built("disk/tests/keyed-amd64.efi"))
		if err != nil {
			t.Fatal(err)
		}
		if err := secureboot.Verify(image, right); err != nil {
			t.Errorf("with a key given by %s: %v", by, err)
		}
		if secureboot.Verify(image, wrong) == nil {
			t.Errorf("with a key given by %s, the image is signed with another", by)
		}
	}

	variables := []string{
		"POWERCLOUD_SB_KEY=" + filepath.Join(outside, secureboot.KeyFile),
		"POWERCLOUD_SB_CERT=" + filepath.Join(outside, secureboot.CertificateFile),
	}
	p.buildWith(t, variables, "EFIFile", target)
	check("variables", certificates[0], certificates[1])

	if err := os.WriteFile(filepath.Join(inside, "BUILD.bazel"), []byte(`exports_files(["db.crt", "db.key"])`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// The flags come before the variables, which stay.
	p.buildWith(t, variables, "EFIFile", "--//disk:sb_key=//keys:db.key", "--//disk:sb_cert=//keys:db.crt", target)
	check("flags", certificates[1], certificates[0])
}
