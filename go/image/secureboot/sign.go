package secureboot

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"debug/pe"
	"encoding/asn1"
	"errors"
	"fmt"

	"github.com/foxboron/go-uefi/authenticode"
	"github.com/sassoftware/relic/v8/lib/pkcs7"

	"powercloud.unidatum.com/go/image/uki"
)

// opusInfo is the OID of the attribute SpcSpOpusInfo, which a signature must have
// and which may be empty.
var opusInfo = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 311, 2, 1, 12}

// Sign returns the EFI image with a signature of its own at its end. The image
// must have none yet. The same image and pair give the same bytes: the padding
// is that of PKCS #1 v1.5, which has nothing random, and no time is stated.
func Sign(image []byte, pair *Pair) ([]byte, error) {
	signed, err := sign(image, pair)
	if err != nil {
		return nil, fmt.Errorf("sign an EFI image: %w", err)
	}
	// A wrong signature shows on a machine that doesn't boot, and is better found
	// here.
	if err := Verify(signed, pair.certificate); err != nil {
		return nil, fmt.Errorf("check what was signed: %w", err)
	}
	return signed, nil
}

func sign(image []byte, pair *Pair) ([]byte, error) {
	parsed, err := parse(image)
	if err != nil {
		return nil, err
	}
	if parsed.Datadir != (pe.DataDirectory{}) {
		return nil, errors.New("it has a signature already")
	}
	// What an image's signature is of: its digest, in a SpcIndirectDataContent.
	// The module returns the fields of that, without what encloses them.
	fields, err := authenticode.CreateSpcIndirectDataContent(parsed.Hash(crypto.SHA256), crypto.SHA256)
	if err != nil {
		return nil, err
	}
	content := asn1.RawValue{Tag: asn1.TagSequence, IsCompound: true, Bytes: fields}
	builder := pkcs7.NewBuilder(pair.key, []*x509.Certificate{pair.certificate}, crypto.SHA256)
	if err := builder.SetContent(authenticode.OIDSpcIndirectDataContent, content); err != nil {
		return nil, err
	}
	if err := builder.AddAuthenticatedAttribute(opusInfo, asn1.RawValue{Tag: asn1.TagSequence, IsCompound: true}); err != nil {
		return nil, err
	}
	signature, err := builder.Sign()
	if err != nil {
		return nil, err
	}
	encoded, err := signature.Marshal()
	if err != nil {
		return nil, err
	}
	if err := parsed.AppendSignature(encoded); err != nil {
		return nil, err
	}
	return parsed.Bytes(), nil
}

// Verify returns an error unless the PowerCloud image has a signature with the
// certificate's key. Like firmware, it doesn't look at the time. It
// is for images of the same build: the module that reads the signatures was not
// written for hostile ones.
func Verify(image []byte, certificate *x509.Certificate) error {
	parsed, err := parse(image)
	if err != nil {
		return err
	}
	ok, err := parsed.Verify(certificate)
	if err != nil {
		return fmt.Errorf("the EFI image's signature is wrong: %w", err)
	}
	if !ok {
		return fmt.Errorf("the EFI image isn't signed with the certificate of %q", certificate.Subject.CommonName)
	}
	return nil
}

// parse reads an image. The module would panic with some files that aren't one,
// so they are looked at first.
func parse(image []byte) (*authenticode.PECOFFBinary, error) {
	if _, err := uki.Read(bytes.NewReader(image), int64(len(image))); err != nil {
		return nil, err
	}
	return authenticode.Parse(bytes.NewReader(image))
}
