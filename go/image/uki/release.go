package uki

import (
	"fmt"
	"regexp"
	"strings"
)

// Release is what an image says of the system in it, in the form of os-release(5).
type Release struct {
	// Version is PowerCloud's, such as "v2026.11.30", or "dev". It has letters,
	// digits, and . _ + - between them, so that it can be part of a file's name.
	Version string
}

// versionPattern is what a version looks like.
var versionPattern = regexp.MustCompile(`^[A-Za-z0-9]+([._+-][A-Za-z0-9]+)*$`)

// maxVersion is the longest version, in bytes.
const maxVersion = 64

// CheckVersion returns an error unless the text can be PowerCloud's version.
func CheckVersion(version string) error {
	if len(version) > maxVersion || !versionPattern.MatchString(version) {
		return fmt.Errorf("the version %q must be at most %d letters and digits, with single . _ + or - between them", version, maxVersion)
	}
	return nil
}

// releaseFormat is the one encoding of a Release. VERSION_ID may have lower-case
// letters only.
const releaseFormat = `NAME="PowerCloud"
ID=powercloud
PRETTY_NAME="PowerCloud %[1]s"
VERSION="%[1]s"
VERSION_ID="%[2]s"
HOME_URL="https://powercloud.unidatum.com"
`

// Marshal returns the content of the section .osrel.
func (r Release) Marshal() ([]byte, error) {
	if err := CheckVersion(r.Version); err != nil {
		return nil, err
	}
	// Of what a version may have, VERSION_ID lacks the plus sign.
	id := strings.ReplaceAll(strings.ToLower(r.Version), "+", "-")
	return fmt.Appendf(nil, releaseFormat, r.Version, id), nil
}

// versionLine finds the version in the section .osrel.
var versionLine = regexp.MustCompile(`(?m)^VERSION="([^"\n]*)"$`)

// ParseRelease reads the content of the section .osrel. It takes what Marshal
// writes, and whatever lines later versions add.
func ParseRelease(content []byte) (Release, error) {
	if len(content) > maxRelease {
		return Release{}, malformed("its section .osrel has more than %d bytes", maxRelease)
	}
	if !strings.Contains("\n"+string(content), "\nID=powercloud\n") {
		return Release{}, malformed("its section .osrel is not that of PowerCloud")
	}
	found := versionLine.FindAllSubmatch(content, 2)
	if len(found) != 1 {
		return Release{}, malformed("its section .osrel names %d versions", len(found))
	}
	r := Release{Version: string(found[0][1])}
	if err := CheckVersion(r.Version); err != nil {
		return Release{}, malformed("its section .osrel: %v", err)
	}
	return r, nil
}
