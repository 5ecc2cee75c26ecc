// Package joinbundle has the join bundle: a new node's whole identity, which pcctl
// issues ahead of time, and with which the node joins its cluster with nobody at its
// console.
//
// A bundle has the node's private keys, what the cluster's CA has signed for it, and
// the key of its state volume. It is a text that docs/formats.md describes.
package joinbundle

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"powercloud.unidatum.com/go/cluster/volumeid"
	signed "powercloud.unidatum.com/go/pki/document"
)

const (
	// KeySize is the size of each key in bytes.
	KeySize = 32
	// MaxCertificate and MaxList are how many bytes each certificate and each of the two
	// signed lists have at most. None of them is empty. A list may be as large as any.
	MaxCertificate = 1536
	MaxList        = signed.MaxSize
	// MaxSize is how many bytes a bundle has at most: one with the largest
	// certificates and lists is not much smaller. No cloud takes as much.
	MaxSize = 3840 << 10
)

const (
	// marker is what the bundles of every version begin with, and firstLine the first
	// line of this one's.
	marker    = "#powercloud-join"
	firstLine = marker + " v1"
)

// ErrInvalid says that something is meant to be a join bundle and isn't an intact one
// of a version that is known. The error that wraps it says why, without any of the
// bundle's content.
var ErrInvalid = errors.New("invalid join bundle")

// Key is a secret of 32 bytes. It is neither printed nor marshaled.
type Key [KeySize]byte

// Format writes a placeholder whatever the verb, so that no log line or error shows
// the key.
func (k Key) Format(s fmt.State, _ rune) {
	// A failed write is fmt's to notice; a Formatter can't report it.
	_, _ = io.WriteString(s, placeholder)
}

// MarshalText returns a placeholder: package encoding/json, by which some logs are
// written, would otherwise spell the key out.
func (k Key) MarshalText() ([]byte, error) { return []byte(placeholder), nil }

const placeholder = "joinbundle.Key(secret)"

// Bundle is a node's whole identity. What is made by the cluster's CA is opaque here;
// a [Check] looks into it. Pass it by pointer: a copy isn't wiped with the original.
type Bundle struct {
	// NodeKey is the seed of the node's Ed25519 key (RFC 8032), and NodeCertificate
	// the X.509 certificate for it, in DER.
	NodeKey         Key
	NodeCertificate []byte
	// CACertificate is the certificate of the cluster's CA, in DER.
	CACertificate []byte
	// WireGuardKey is the private key of the node's end of the mesh: a Curve25519
	// scalar (RFC 7748).
	WireGuardKey Key
	// VolumeID and VolumeKey are the ID of the state volume, and the key that the
	// node wraps its volume key with.
	VolumeID  volumeid.ID
	VolumeKey Key
	// Membership and Revocations are the signed lists, as they are published.
	Membership, Revocations []byte
}

// Wipe overwrites the keys. It may be called more than once.
func (b *Bundle) Wipe() {
	for _, key := range []*Key{&b.NodeKey, &b.WireGuardKey, &b.VolumeKey} {
		clear(key[:])
	}
}

// document is the JSON in a bundle, in the order of its fields.
type document struct {
	NodeKey         []byte `json:"node_key"`
	NodeCertificate []byte `json:"node_certificate"`
	CACertificate   []byte `json:"ca_certificate"`
	WireGuardKey    []byte `json:"wireguard_key"`
	VolumeID        string `json:"volume_id"`
	VolumeKey       []byte `json:"volume_key"`
	Membership      []byte `json:"membership"`
	Revocations     []byte `json:"revocations"`
	SHA256          string `json:"sha256"`
}

// part is one of the JSON's fields.
type part struct {
	name string
	// value is the bundle's own, not a copy; least and most bound its bytes.
	value       []byte
	least, most int
	// hex is whether it is written in hexadecimal rather than base64.
	hex bool
}

// parts returns the fields of a bundle, in the JSON's order, without the checksum.
func (b *Bundle) parts() []part {
	return []part{
		{"node_key", b.NodeKey[:], KeySize, KeySize, false},
		{"node_certificate", b.NodeCertificate, 1, MaxCertificate, false},
		{"ca_certificate", b.CACertificate, 1, MaxCertificate, false},
		{"wireguard_key", b.WireGuardKey[:], KeySize, KeySize, false},
		{"volume_id", b.VolumeID[:], volumeid.Size, volumeid.Size, true},
		{"volume_key", b.VolumeKey[:], KeySize, KeySize, false},
		{"membership", b.Membership, 1, MaxList, false},
		{"revocations", b.Revocations, 1, MaxList, false},
	}
}

// check tells whether a bundle can be one, by its sizes.
func (b *Bundle) check() error {
	for _, p := range b.parts() {
		switch {
		case len(p.value) < p.least || len(p.value) > p.most:
			return fmt.Errorf("%w: %s has %d bytes, where %d to %d are allowed", ErrInvalid, p.name, len(p.value), p.least, p.most)
		case len(bytes.Trim(p.value, "\x00")) == 0:
			// A key that everybody knows: it was wiped, or never filled in.
			return fmt.Errorf("%w: %s is all zeros", ErrInvalid, p.name)
		}
	}
	return nil
}

// sumSize is the size of the JSON's end in bytes: the checksum, from its field's name
// on.
const sumSize = len(`"sha256":""}`) + 2*sha256.Size

// marshal returns the JSON. It is written here rather than by encoding/json, which
// keeps buffers that nobody can wipe.
func (b *Bundle) marshal() []byte {
	// Enough that the buffer is never moved, and its old place left as it was.
	size := 1 + sumSize
	for _, p := range b.parts() {
		size += len(p.name) + len(`"":"",`) + max(base64.StdEncoding.EncodedLen(len(p.value)), hex.EncodedLen(len(p.value)))
	}
	out := append(make([]byte, 0, size), '{')
	for _, p := range b.parts() {
		out = fmt.Appendf(out, "%q:\"", p.name)
		if p.hex {
			out = hex.AppendEncode(out, p.value)
		} else {
			out = base64.StdEncoding.AppendEncode(out, p.value)
		}
		out = append(out, `",`...)
	}
	return fmt.Appendf(out, `"sha256":"%x"}`, sha256.Sum256(out))
}

// Encode returns the bundle as the text that is given to a machine. The caller owns
// it and should clear it after use.
func (b *Bundle) Encode() ([]byte, error) {
	if err := b.check(); err != nil {
		return nil, err
	}
	content := b.marshal()
	defer clear(content)
	size := len(firstLine) + 1 + base64.StdEncoding.EncodedLen(len(content)) + 1
	out := append(make([]byte, 0, size), firstLine+"\n"...)
	return append(base64.StdEncoding.AppendEncode(out, content), '\n'), nil
}

// LooksLike tells whether a text is meant to be a bundle: it begins with the
// marker, perhaps after white space or a byte order mark that an editor has put
// there. A bundle that was damaged is then not taken for something else.
func LooksLike(text []byte) bool {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	return bytes.HasPrefix(bytes.TrimSpace(text), []byte(marker))
}

// Decode reads a bundle. A text has one meaning or none: what Encode would not write
// is refused, except for its line ends, which may be CR LF, and of which the last may
// be missing, as programs that pass texts on change them. The text is left as it is;
// the caller should clear it.
func Decode(text []byte) (*Bundle, error) {
	encoded, err := body(text)
	if err != nil {
		return nil, err
	}
	content := make([]byte, base64.StdEncoding.DecodedLen(len(encoded)))
	defer func() { clear(content) }()
	n, err := base64.StdEncoding.Strict().Decode(content, encoded)
	if err != nil {
		return nil, fmt.Errorf("%w: its second line isn't base64; it was cut short or edited", ErrInvalid)
	}
	b, err := unmarshal(content[:n])
	if err != nil {
		return nil, err
	}
	again := b.marshal()
	defer clear(again)
	if !bytes.Equal(again, content[:n]) {
		b.Wipe()
		if summed := len(again) - sumSize; n == len(again) && bytes.Equal(again[:summed], content[:summed]) {
			return nil, fmt.Errorf("%w: its checksum is wrong; it was damaged or edited", ErrInvalid)
		}
		return nil, fmt.Errorf("%w: its JSON isn't as bundles have it: a field is unknown, doubled, out of its place or spelled in another way", ErrInvalid)
	}
	return b, nil
}

// body returns the line with the base64.
func body(text []byte) ([]byte, error) {
	if len(text) > MaxSize {
		return nil, fmt.Errorf("%w: it has more than %d bytes", ErrInvalid, MaxSize)
	}
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	first = bytes.TrimSuffix(first, []byte("\r"))
	switch {
	case string(first) == firstLine:
	case bytes.HasPrefix(first, []byte(marker+" v")):
		return nil, fmt.Errorf("%w: it is of another version than v1, which this software doesn't know", ErrInvalid)
	default:
		return nil, fmt.Errorf("%w: its first line isn't %q", ErrInvalid, firstLine)
	}
	rest = bytes.TrimSuffix(bytes.TrimSuffix(rest, []byte("\n")), []byte("\r"))
	switch {
	case len(rest) == 0:
		return nil, fmt.Errorf("%w: there is nothing after its first line", ErrInvalid)
	case bytes.ContainsAny(rest, "\r\n"): // Go's decoder skips them.
		return nil, fmt.Errorf("%w: it has more than two lines", ErrInvalid)
	}
	return rest, nil
}

// unmarshal reads the JSON. Errors of encoding/json can have some of the content in
// them, and aren't passed on.
func unmarshal(content []byte) (*Bundle, error) {
	var d document
	defer func() {
		for _, key := range [][]byte{d.NodeKey, d.WireGuardKey, d.VolumeKey} {
			clear(key)
		}
	}()
	if err := json.Unmarshal(content, &d); err != nil {
		return nil, fmt.Errorf("%w: its JSON can't be read", ErrInvalid)
	}
	b := &Bundle{
		NodeCertificate: d.NodeCertificate, CACertificate: d.CACertificate,
		Membership: d.Membership, Revocations: d.Revocations,
	}
	for _, key := range []struct {
		name string
		from []byte
		to   *Key
	}{
		{"node_key", d.NodeKey, &b.NodeKey},
		{"wireguard_key", d.WireGuardKey, &b.WireGuardKey},
		{"volume_key", d.VolumeKey, &b.VolumeKey},
	} {
		if len(key.from) != KeySize {
			b.Wipe()
			return nil, fmt.Errorf("%w: %s has %d bytes instead of %d", ErrInvalid, key.name, len(key.from), KeySize)
		}
		copy(key.to[:], key.from)
	}
	id, err := hex.DecodeString(d.VolumeID)
	if err != nil || len(id) != volumeid.Size {
		b.Wipe()
		return nil, fmt.Errorf("%w: volume_id isn't %d hexadecimal digits", ErrInvalid, 2*volumeid.Size)
	}
	copy(b.VolumeID[:], id)
	if err := b.check(); err != nil {
		b.Wipe()
		return nil, err
	}
	return b, nil
}
