// Package release names, packs and lists the files of a release.
//
// A release holds, for each architecture, the EFI file of a node, its disk image,
// compressed as it is and packed for Google Cloud and Azure, pcctl for each system,
// and the checksums of all of them (docs/formats.md, "Release files").
package release

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"powercloud.unidatum.com/go/image/uki"
)

// SumsName is the name of the file with the checksums.
const SumsName = "SHA256SUMS"

// Name returns the name of a release's file. What is built is named without a
// version, such as "pcctl-linux-amd64" or "powercloud-amd64.efi", and gets it
// after the first part: "powercloud-v2026.11.30-amd64.efi".
func Name(built, version string) (string, error) {
	if err := uki.CheckVersion(version); err != nil {
		return "", err
	}
	product, rest, ok := strings.Cut(built, "-")
	if !ok || product == "" || rest == "" || strings.ContainsAny(built, "/\\\n") {
		return "", fmt.Errorf("%q has no product and architecture to put a version between", built)
	}
	return product + "-" + version + "-" + rest, nil
}

// WriteSums writes the file SHA256SUMS for all files of the folder, in the form
// that sha256sum -c reads, sorted by name.
func WriteSums(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("list the release's files: %w", err)
	}
	var lines []string
	for _, entry := range entries {
		if entry.Name() == SumsName {
			return fmt.Errorf("the release has a file %s already", SumsName)
		}
		sum, err := fileSum(filepath.Join(folder, entry.Name()))
		if err != nil {
			return fmt.Errorf("hash the release's file %s: %w", entry.Name(), err)
		}
		// Two spaces: the mode in which sha256sum reads files as they are.
		lines = append(lines, fmt.Sprintf("%x  %s\n", sum, entry.Name()))
	}
	if len(lines) == 0 {
		return errors.New("the release has no files")
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[sha256.Size*2:], b[sha256.Size*2:]) })
	if err := os.WriteFile(filepath.Join(folder, SumsName), []byte(strings.Join(lines, "")), 0o644); err != nil {
		return fmt.Errorf("write the checksums: %w", err)
	}
	return nil
}

// fileSum returns the SHA-256 of a file.
func fileSum(name string) (sum []byte, err error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return nil, err
	}
	return hash.Sum(nil), nil
}

// statusKey is what tools/bazel/status calls the version.
const statusKey = "STABLE_VERSION "

// Version returns the version in Bazel's stable status file, as a build with
// --config=release writes it.
func Version(status []byte) (string, error) {
	for line := range strings.Lines(string(status)) {
		if version, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), statusKey); ok {
			return version, uki.CheckVersion(version)
		}
	}
	return "", errors.New("the build's status has no STABLE_VERSION: build with --config=release, or without --stamp")
}
