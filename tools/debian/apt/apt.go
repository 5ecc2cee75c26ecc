// Package apt asks the machine's APT which packages a set of names stands for.
// APT runs on indices, a status and settings in a folder of its own: it needs
// no root, sees nothing of what is installed, and changes nothing of the
// machine. Only the sources and their keys are the machine's.
package apt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"powercloud.unidatum.com/tools/debian/lockfile"
)

// A Resolver finds packages of one architecture in one suite.
type Resolver struct {
	directory    string
	architecture string
	suite        string
}

// New prepares APT in the folder, which must exist and be empty, and fetches
// the indices of the machine's sources. The suite is a code name such as
// "bookworm"; packages of other suites are not found.
func New(ctx context.Context, directory, architecture, suite string) (*Resolver, error) {
	directory, err := filepath.Abs(directory)
	if err != nil {
		return nil, fmt.Errorf("prepare APT: %w", err)
	}
	r := &Resolver{directory: directory, architecture: architecture, suite: suite}
	for _, folder := range []string{"lists/partial", "archives/partial"} {
		if err := os.MkdirAll(filepath.Join(directory, folder), 0o700); err != nil {
			return nil, fmt.Errorf("prepare APT: %w", err)
		}
	}
	for name, content := range map[string]string{
		"apt.conf":    r.configuration(),
		"preferences": r.preferences(),
	} {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(content), 0o600); err != nil {
			return nil, fmt.Errorf("prepare APT: %w", err)
		}
	}
	if _, err := r.run(ctx, "update"); err != nil {
		return nil, fmt.Errorf("fetch the indices of Debian packages: %w", err)
	}
	return r, nil
}

// configuration is the same as that of debian.bzl, but for the preferences.
func (r *Resolver) configuration() string {
	return fmt.Sprintf(`#clear APT::Architectures;
#clear APT::Update;
#clear DPkg;
APT::Architecture "%[2]s";
APT::Architectures { "%[2]s"; };
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Acquire::ForceHash "SHA256";
Acquire::Languages "none";
Acquire::Retries "3";
Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Dir::Cache "%[1]s";
Dir::Etc::preferences "%[1]s/preferences";
Dir::Etc::preferencesparts "/dev/null";
Dir::State "%[1]s";
Dir::State::lists "%[1]s/lists";
Dir::State::status "/dev/null";
`, r.directory, r.architecture)
}

// preferences forbids every version that the suite itself doesn't have.
func (r *Resolver) preferences() string {
	return fmt.Sprintf(`Package: *
Pin: release n=%s,l=Debian,c=main
Pin-Priority: 990

Package: *
Pin: release c=*
Pin-Priority: -1
`, r.suite)
}

// Resolve returns the packages of these names, and with closure also all that
// they depend on as if nothing was installed, sorted by name. Recommended
// packages are not among them.
func (r *Resolver) Resolve(ctx context.Context, names []string, closure bool) ([]lockfile.Package, error) {
	for _, name := range names {
		if !lockfile.IsPackageName(name) {
			return nil, fmt.Errorf("%q is no name of a Debian package; versions and architectures don't belong into it", name)
		}
	}
	arguments := []string{"download"}
	if closure {
		arguments = []string{"install", "--yes"}
	}
	out, err := r.run(ctx, append(append(arguments, "--print-uris", "--"), names...)...)
	if err != nil {
		return nil, fmt.Errorf("find the packages in the suite %s: %w", r.suite, err)
	}
	return parseURIs(out)
}

// run runs apt-get and returns what it prints. What it complains of becomes
// the error, in one line.
func (r *Resolver) run(ctx context.Context, arguments ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, "apt-get", append([]string{"-qq", "-c", filepath.Join(r.directory, "apt.conf")}, arguments...)...)
	command.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	var out, complaints bytes.Buffer
	command.Stdout, command.Stderr = &out, &complaints
	if err := command.Run(); err != nil {
		if text := strings.Join(strings.Fields(complaints.String()), " "); text != "" {
			return nil, fmt.Errorf("apt-get: %s", text)
		}
		return nil, fmt.Errorf("apt-get: %w", err)
	}
	return out.Bytes(), nil
}

// parseURIs reads what `apt-get --print-uris` prints: a line a package, such as
//
//	'http://host/hello_2.10-3_amd64.deb' hello_2.10-3_amd64.deb 53080 SHA256:2e6e...
func parseURIs(out []byte) ([]lockfile.Package, error) {
	pattern := regexp.MustCompile(`^'[^']*' ([^ _]+)_([^ _]+)_([^ _]+)\.deb [0-9]+ SHA256:([0-9a-f]{64})$`)
	var packages []lockfile.Package
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSuffix(line, "\n")
		if !strings.HasPrefix(line, "'") {
			continue // What `install` says about its plan.
		}
		fields := pattern.FindStringSubmatch(line)
		if fields == nil {
			return nil, fmt.Errorf("apt-get names no SHA-256 of a package in %q", line)
		}
		version, err := url.PathUnescape(fields[2])
		if err != nil {
			return nil, fmt.Errorf("apt-get writes a version that can't be read in %q: %w", line, err)
		}
		packages = append(packages, lockfile.Package{
			Name: fields[1], Version: version, Architecture: fields[3], SHA256: fields[4],
			File: lockfile.FileName(fields[1], version, fields[3]),
		})
	}
	if len(packages) == 0 {
		return nil, errors.New("apt-get names no package")
	}
	return packages, nil
}
