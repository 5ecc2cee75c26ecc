// Package root makes a root file system out of Debian packages and runs
// programs in it, apart from the machine's own.
//
// A root is an archive, a tar file compressed with zstd, whose bytes follow from
// the packages alone. No maintainer script has run: what they would have made is
// given as links. As everywhere in Debian 12, /bin, /lib, /lib64 and /sbin are
// links to the folders of these names in /usr.
package root

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
	"pault.ag/go/debian/deb"
)

// merged are the folders that are links to those of the same name in /usr.
var merged = [...]string{"bin", "lib", "lib64", "sbin"}

// unused are folders that programs don't read. Without them an archive is half
// as large.
var unused = [...]string{"usr/share/bug", "usr/share/doc", "usr/share/info", "usr/share/lintian", "usr/share/locale", "usr/share/man"}

// accounts are files that the scripts of base-passwd would have made.
var accounts = map[string]string{
	"etc/group":  "root:x:0:\n",
	"etc/passwd": "root:x:0:0:root:/root:/bin/sh\n",
}

// Pack writes the archive of a root with these packages, the paths of .deb
// files. The links lead from a path in the root, without a slash at its
// beginning, to their targets.
func Pack(to io.Writer, packages []string, links map[string]string) error {
	// More than one at work would make the bytes depend on the processors.
	compressed, err := zstd.NewWriter(to, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return fmt.Errorf("pack a root: %w", err)
	}
	p := packer{out: tar.NewWriter(compressed), done: map[string]tar.Header{}}
	if err := p.skeleton(links); err != nil {
		return fmt.Errorf("pack a root: %w", err)
	}
	for _, name := range slices.SortedFunc(slices.Values(packages), func(a, b string) int {
		return strings.Compare(path.Base(a), path.Base(b))
	}) {
		if err := p.addPackage(name); err != nil {
			return fmt.Errorf("pack a root: %s: %w", path.Base(name), err)
		}
	}
	if err := errors.Join(p.out.Close(), compressed.Close()); err != nil {
		return fmt.Errorf("pack a root: %w", err)
	}
	return nil
}

// A packer writes an archive.
type packer struct {
	out *tar.Writer
	// done is what the archive has, by path.
	done map[string]tar.Header
}

// skeleton adds what no package brings.
func (p *packer) skeleton(links map[string]string) error {
	for _, folder := range []string{"dev", "etc", "proc", "root", "tmp", "usr"} {
		if err := p.add(tar.Header{Typeflag: tar.TypeDir, Name: folder, Mode: 0o755}, nil); err != nil {
			return err
		}
	}
	for _, name := range merged {
		if err := p.add(tar.Header{Typeflag: tar.TypeDir, Name: "usr/" + name, Mode: 0o755}, nil); err != nil {
			return err
		}
		if err := p.add(tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: "usr/" + name, Mode: 0o777}, nil); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(accounts)) {
		content := accounts[name]
		if err := p.add(tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}, strings.NewReader(content)); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(links)) {
		place, err := clean(name)
		if err != nil {
			return err
		}
		if err := p.add(tar.Header{Typeflag: tar.TypeSymlink, Name: place, Linkname: links[name], Mode: 0o777}, nil); err != nil {
			return err
		}
	}
	return nil
}

// addPackage adds the files of one package.
func (p *packer) addPackage(name string) (err error) {
	opened, closeFile, err := deb.LoadFile(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeFile()) }()
	for {
		header, err := opened.Data.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := p.addEntry(header, opened.Data); err != nil {
			return err
		}
	}
}

// addEntry adds one file of a package.
func (p *packer) addEntry(header *tar.Header, content io.Reader) error {
	name, err := clean(header.Name)
	if err != nil {
		return err
	}
	if name == "." || slices.Contains(merged[:], name) || isUnused(name) {
		return nil
	}
	entry := tar.Header{Typeflag: header.Typeflag, Name: name, Mode: header.Mode & 0o777}
	switch header.Typeflag {
	case tar.TypeDir:
		entry.Mode |= 0o700
	case tar.TypeReg:
		entry.Size = header.Size
	case tar.TypeSymlink:
		entry.Linkname, entry.Mode = header.Linkname, 0o777
	case tar.TypeLink:
		if entry.Linkname, err = clean(header.Linkname); err != nil {
			return err
		}
	default:
		return fmt.Errorf("%s is no file, folder or link", name)
	}
	return p.add(entry, content)
}

// add adds an entry. Packages may share folders, and nothing else.
func (p *packer) add(entry tar.Header, content io.Reader) error {
	if other, ok := p.done[entry.Name]; ok {
		if entry.Typeflag == tar.TypeDir && other.Typeflag == tar.TypeDir {
			return nil
		}
		return fmt.Errorf("%s is there already", entry.Name)
	}
	if parent := path.Dir(entry.Name); parent != "." {
		if err := p.add(tar.Header{Typeflag: tar.TypeDir, Name: parent, Mode: 0o755}, nil); err != nil {
			return fmt.Errorf("%s: %w", entry.Name, err)
		}
	}
	p.done[entry.Name] = entry
	entry.Format = tar.FormatPAX
	if entry.Typeflag == tar.TypeDir {
		entry.Name += "/"
	}
	if err := p.out.WriteHeader(&entry); err != nil {
		return err
	}
	if entry.Size == 0 {
		return nil
	}
	_, err := io.CopyN(p.out, content, entry.Size)
	return err
}

// clean returns where the file of this path in a package lies in the root.
func clean(name string) (string, error) {
	cleaned := path.Clean(strings.TrimPrefix(name, "/"))
	if cleaned == ".." || strings.HasPrefix(cleaned, "../") {
		return "", fmt.Errorf("%q leads out of the root", name)
	}
	for _, folder := range merged {
		if strings.HasPrefix(cleaned, folder+"/") {
			return "usr/" + cleaned, nil
		}
	}
	return cleaned, nil
}

func isUnused(name string) bool {
	return slices.ContainsFunc(unused[:], func(folder string) bool {
		return name == folder || strings.HasPrefix(name, folder+"/")
	})
}
