package pki

import (
	"bytes"
	"strings"
	"testing"

	"powercloud.unidatum.com/go/keys/keystest"
)

func TestKeyReadsBack(t *testing.T) {
	text, err := MarshalKey(privateKey(1))
	if err != nil {
		t.Fatal(err)
	}
	key, err := ParseKey(text)
	if err != nil || !key.Equal(privateKey(1)) {
		t.Errorf("%v", err)
	}
	if _, err := MarshalKey(privateKey(1)[:63]); err == nil {
		t.Error("a short key is written")
	}
}

func TestParsePEMRefuses(t *testing.T) {
	key, err := MarshalKey(privateKey(1))
	if err != nil {
		t.Fatal(err)
	}
	certificate := MarshalCertificate(issueAdmin(t, newCA(t, keystest.First(t)), 1))
	body := string(key)
	ecdsa := "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgevZzL1gdAFr88hb2\nOF/2NxApJCzGCEDdfSp6VQO30hyhRANCAAQRWz+jn65BtOMvdyHKcvjBeBSDZH2r\n1RTwjmYSi9R/zpBnuQ4EiMnCqfMPWiZqB4QdbAd0E7oH50VpuZ1P087G\n-----END PRIVATE KEY-----\n"
	for title, text := range map[string]string{
		"nothing":       "",
		"no PEM":        "key",
		"text before":   "x\n" + body,
		"text after":    body + "x",
		"line after":    body + "\n",
		"two":           body + body,
		"headers":       strings.Replace(body, "KEY-----\n", "KEY-----\nA: b\n\n", 1),
		"other lines":   strings.Replace(body, "\n", "\r\n", -1),
		"a certificate": string(certificate),
		"another key":   ecdsa,
		"no key":        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
		"too large":     body + strings.Repeat("\n", maxPEM),
	} {
		if key, err := ParseKey([]byte(text)); err == nil {
			t.Errorf("%s: it was read as %d bytes", title, len(key))
		}
		if title == "a certificate" {
			continue
		}
		if _, err := ParseCertificate([]byte(text)); err == nil {
			t.Errorf("%s: it was read as a certificate", title)
		}
	}
	if _, err := ParseCertificate(certificate); err != nil {
		t.Error(err)
	}
}

// FuzzParseKey must refuse, or read what is written the same way.
func FuzzParseKey(f *testing.F) {
	text, err := MarshalKey(privateKey(1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		key, err := ParseKey(text)
		if err != nil {
			return
		}
		if again, err := MarshalKey(key); err != nil || !bytes.Equal(again, text) {
			t.Errorf("%q is written %q, %v", text, again, err)
		}
	})
}

// FuzzVerify feeds the reader of certificates: it must refuse all but those that
// were issued.
func FuzzVerify(f *testing.F) {
	ca := newCA(f, keystest.First(f))
	node, admin := issueNode(f, ca, 2), issueAdmin(f, ca, 1)
	f.Add(MarshalCertificate(node))
	f.Add(MarshalCertificate(admin))
	f.Add(MarshalCertificate(ca.authority.certificate))
	f.Add(MarshalCertificate(issueNode(f, newCA(f, keystest.Second(f)), 2)))
	f.Fuzz(func(t *testing.T, text []byte) {
		certificate, err := ParseCertificate(text)
		if err != nil {
			return
		}
		if _, err := NewAuthority(certificate); err == nil && certificate.CheckSignatureFrom(certificate) != nil {
			t.Error("an authority that didn't sign itself was accepted")
		}
		_, err = ca.Authority().Verify(certificate, issued())
		if genuine := certificate.Equal(node) || certificate.Equal(admin); genuine != (err == nil) {
			t.Errorf("genuine is %v, and %v", genuine, err)
		}
	})
}
