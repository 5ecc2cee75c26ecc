package identity

import (
	"bytes"
	"encoding"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"powercloud.unidatum.com/go/cluster/meshkey"
	"powercloud.unidatum.com/go/cluster/volumeid"
	"powercloud.unidatum.com/go/pki"
	"powercloud.unidatum.com/go/pki/document"
	"powercloud.unidatum.com/go/sys/atomicfile"
)

var (
	// ErrNone says that a state folder has no identity.
	ErrNone = errors.New("the node has no identity yet")
	// ErrDamaged says that the files of an identity don't belong together, or aren't
	// what their names say. The error that wraps it says which.
	ErrDamaged = errors.New("the node's identity is damaged")
)

const (
	// directoryName is the directory in the state folder that has the files, and
	// pendingName what it is called until all of them are in it.
	directoryName = "identity"
	pendingName   = "identity.new"
)

// Names returns the names of what an identity has in a state folder.
func Names() []string { return []string{directoryName, pendingName} }

// The files.
const (
	keyFile         = "node.key"
	certificateFile = "node.crt"
	authorityFile   = "ca.crt"
	meshKeyFile     = "mesh.key"
	volumeFile      = "volume"
	nameFile        = "name"
	membershipFile  = "membership"
	revocationsFile = "revocations"
)

// The modes of the directory and of the files in it.
const (
	directoryMode = 0o700
	fileMode      = 0o600
)

// maxSmall is the size in bytes that no file exceeds but those of the lists.
const maxSmall = 4096

// files are the files' contents by their names.
type files map[string][]byte

// wipe overwrites those that are secret.
func (f files) wipe() {
	clear(f[keyFile])
	clear(f[meshKeyFile])
}

// read reads the files of an identity. Errors wrap ErrNone or ErrDamaged, or say why
// something can't be read.
func read(directory string) (files, error) {
	switch info, err := os.Lstat(directory); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, ErrNone
	case err != nil:
		return nil, fmt.Errorf("looking for the node's identity: %w", err)
	case !info.IsDir():
		return nil, fmt.Errorf("%w: %s isn't a directory", ErrDamaged, directory)
	}
	f := files{}
	for _, name := range []string{
		keyFile, certificateFile, authorityFile, meshKeyFile, volumeFile, nameFile, membershipFile, revocationsFile,
	} {
		limit := int64(maxSmall)
		if name == membershipFile || name == revocationsFile {
			limit = int64(document.MaxSize)
		}
		content, err := atomicfile.Read(filepath.Join(directory, name), limit)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			// Whether it must be there is for parse to say.
		case errors.Is(err, atomicfile.ErrTooLarge):
			f.wipe()
			return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
		case err != nil:
			f.wipe()
			return nil, fmt.Errorf("reading the node's identity: %w", err)
		default:
			f[name] = content
		}
	}
	return f, nil
}

// parse makes an identity of the files. Errors wrap ErrDamaged.
func (f files) parse() (*Identity, error) {
	p := Parts{Membership: f[membershipFile], Revocations: f[revocationsFile]}
	defer p.MeshKey.Wipe()
	i, err := f.fill(&p)
	if err != nil {
		if p.Key != nil {
			p.Key.Wipe()
		}
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return i, nil
}

func (f files) fill(p *Parts) (*Identity, error) {
	for _, part := range []struct {
		name     string
		optional bool
		parse    func(text []byte) error
	}{
		{keyFile, false, func(text []byte) error {
			private, err := pki.ParseKey(text)
			if err == nil {
				p.Key, err = newKey(private)
			}
			return err
		}},
		{certificateFile, false, func(text []byte) (err error) {
			p.Certificate, err = parseCertificate(text)
			return err
		}},
		{authorityFile, false, func(text []byte) (err error) {
			p.Authority, err = parseCertificate(text)
			return err
		}},
		{meshKeyFile, false, func(text []byte) error { return parseMeshKey(&p.MeshKey, text) }},
		{volumeFile, true, func(text []byte) error { return parseLine(&p.Volume, text) }},
		{nameFile, true, func(text []byte) error {
			line, ended := bytes.CutSuffix(text, []byte("\n"))
			if p.Name = string(line); !ended || p.Name == "" {
				return errors.New("it isn't a line")
			}
			return nil
		}},
	} {
		text, there := f[part.name]
		if !there {
			if part.optional {
				continue
			}
			return nil, fmt.Errorf("there is no %s", part.name)
		}
		if err := part.parse(text); err != nil {
			return nil, fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return New(*p)
}

func parseCertificate(text []byte) ([]byte, error) {
	certificate, err := pki.ParseCertificate(text)
	if err != nil {
		return nil, err
	}
	return certificate.Raw, nil
}

// formatMeshKey returns a mesh key in the form of wg(8): a line of base64.
func formatMeshKey(k *meshkey.Private) []byte {
	return append(base64.StdEncoding.AppendEncode(make([]byte, 0, 64), k[:]), '\n')
}

func parseMeshKey(k *meshkey.Private, text []byte) error {
	line, ended := bytes.CutSuffix(text, []byte("\n"))
	var decoded [meshkey.Size + 1]byte
	defer clear(decoded[:])
	if ended && len(line) == base64.StdEncoding.EncodedLen(len(k)) && !bytes.ContainsAny(line, "\r\n") {
		if n, err := base64.StdEncoding.Strict().Decode(decoded[:], line); err == nil && n == len(k) {
			copy(k[:], decoded[:])
			return nil
		}
	}
	return errors.New("it isn't a line with 32 bytes in base64") // Nothing of the text is shown.
}

// parseLine reads a line with something of which all zeros stand for none, which isn't
// written.
func parseLine(to encoding.TextUnmarshaler, text []byte) error {
	line, ended := bytes.CutSuffix(text, []byte("\n"))
	switch {
	case !ended:
		return errors.New("its line has no end")
	case len(bytes.Trim(line, "0")) == 0:
		return errors.New("it is all zeros")
	}
	return to.UnmarshalText(line)
}

// files returns the files of an identity, of which the caller wipes the secret ones.
func (i *Identity) files() (files, error) {
	key, err := i.secrets.key.marshal()
	if err != nil {
		return nil, err
	}
	f := files{
		keyFile:         key,
		certificateFile: pki.MarshalCertificate(i.Certificate),
		authorityFile:   pki.MarshalCertificate(i.Authority.Certificate()),
		meshKeyFile:     formatMeshKey(&i.secrets.mesh),
	}
	if i.Volume != (volumeid.ID{}) {
		f[volumeFile] = []byte(i.Volume.String() + "\n")
	}
	if i.first != "" {
		f[nameFile] = []byte(i.first + "\n")
	}
	if i.Membership != nil {
		f[membershipFile] = i.Membership.Signed()
	}
	if i.Revocations != nil {
		f[revocationsFile] = i.Revocations.Signed()
	}
	return f, nil
}
