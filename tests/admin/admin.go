// Package admin is an admin's machine for tests: the real pcctl, as a program, with a
// configuration directory and a cluster of its own.
package admin

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"powercloud.unidatum.com/go/admin/configuration"
	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/open"
	"powercloud.unidatum.com/go/blob/quorum"
	"powercloud.unidatum.com/go/pki"
	"powercloud.unidatum.com/go/store/repository"
	"powercloud.unidatum.com/tests/built"
)

// passphrase is that of every cluster here.
const passphrase = "a passphrase of the tests"

// Admin is an admin's machine. Its methods fail the test where pcctl doesn't do what
// they say.
type Admin struct {
	t          testing.TB
	pcctl      string
	folder     string
	repository string
}

// New makes a cluster over three directories. Bazel tells where pcctl is by the
// variable PCCTL.
func New(ctx context.Context, t testing.TB) *Admin {
	t.Helper()
	pcctl, err := filepath.Abs(built.Path(t, "PCCTL"))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	a := &Admin{t: t, pcctl: pcctl, folder: folder}
	for _, name := range []string{"home", "colo", "cloud"} {
		a.repository += "," + filepath.Join(folder, name)
	}
	a.repository = a.repository[1:]
	a.Unlocked(ctx, "init")
	return a
}

// Path returns the path of a file of the admin's.
func (a *Admin) Path(name string) string { return filepath.Join(a.folder, name) }

// Directory returns pcctl's configuration directory.
func (a *Admin) Directory() configuration.Directory {
	return configuration.Directory(filepath.Join(a.folder, "config"))
}

// CA returns the cluster's authority with its key, until the test ends.
func (a *Admin) CA(ctx context.Context) *pki.CA {
	a.t.Helper()
	ca, err := a.openCA(ctx)
	if err != nil {
		a.t.Fatalf("open the cluster: %v", err)
	}
	a.t.Cleanup(ca.Wipe)
	return ca
}

func (a *Admin) openCA(ctx context.Context) (*pki.CA, error) {
	specs, err := blob.ParseList(a.repository)
	if err != nil {
		return nil, err
	}
	locations, err := open.Options{}.All(specs)
	if err != nil {
		return nil, err
	}
	set, err := quorum.New(locations, 0)
	if err != nil {
		return nil, err
	}
	headers, err := repository.Read(ctx, set)
	if err != nil {
		return nil, err
	}
	unlocked, err := headers.Unlock(repository.Secret{Passphrase: []byte(passphrase)})
	if err != nil {
		return nil, err
	}
	defer unlocked.Root.Wipe()
	return pki.NewCA(unlocked.Root, unlocked.Cluster)
}

// Unlocked runs pcctl with the cluster's locations and passphrase, and returns what it
// prints.
func (a *Admin) Unlocked(ctx context.Context, arguments ...string) string {
	a.t.Helper()
	return a.succeed(a.run(ctx, append([]string{"--repo", a.repository}, arguments...), true))
}

// Run runs pcctl with the admin certificate alone, and returns what it prints.
func (a *Admin) Run(ctx context.Context, arguments ...string) string {
	a.t.Helper()
	return a.succeed(a.run(ctx, arguments, false))
}

// Refused runs pcctl with the cluster's locations and passphrase, which must fail, and
// returns the error that it prints.
func (a *Admin) Refused(ctx context.Context, arguments ...string) string {
	a.t.Helper()
	r := a.run(ctx, append([]string{"--repo", a.repository}, arguments...), true)
	if r.err == nil {
		a.t.Fatalf("pcctl %s did not fail:\n%s", strings.Join(arguments, " "), r.output)
	}
	return strings.TrimSpace(r.errors)
}

// Begin runs pcctl as Unlocked does, and goes on meanwhile. The channel is closed when
// it has ended, however.
func (a *Admin) Begin(ctx context.Context, arguments ...string) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.run(ctx, append([]string{"--repo", a.repository}, arguments...), true)
	}()
	return ended
}

// Following is a pcctl that goes on until it is interrupted.
type Following struct {
	t       testing.TB
	command *exec.Cmd
	output  *bufio.Scanner
	errors  bytes.Buffer
}

// Follow starts pcctl with the admin certificate alone. It must be interrupted.
func (a *Admin) Follow(ctx context.Context, arguments ...string) *Following {
	a.t.Helper()
	f := &Following{t: a.t, command: a.command(ctx, arguments)}
	f.command.Stderr = &f.errors
	output, err := f.command.StdoutPipe()
	if err != nil {
		a.t.Fatal(err)
	}
	if err := f.command.Start(); err != nil {
		a.t.Fatal(err)
	}
	f.output = bufio.NewScanner(output)
	return f
}

// Expect reads what pcctl prints up to a line with some text in it.
func (f *Following) Expect(text string) {
	f.t.Helper()
	for f.output.Scan() {
		if strings.Contains(f.output.Text(), text) {
			return
		}
	}
	err := f.command.Wait()
	f.t.Fatalf("%v ended without %q: %v, %v, %s", f.command.Args[1:], text, f.output.Err(), err, &f.errors)
}

// Interrupt ends pcctl as Ctrl-C does, which is no failure.
func (f *Following) Interrupt() {
	f.t.Helper()
	if err := f.command.Process.Signal(os.Interrupt); err != nil {
		f.t.Fatal(err)
	}
	for f.output.Scan() {
		// Else it may wait for somebody to read.
	}
	if err := f.command.Wait(); err != nil || f.errors.Len() > 0 {
		f.t.Errorf("%v was interrupted: %v, %s", f.command.Args[1:], err, &f.errors)
	}
}

// result is what came of running pcctl.
type result struct {
	arguments      []string
	output, errors string
	err            error
}

func (a *Admin) run(ctx context.Context, arguments []string, unlocked bool) result {
	var output, errors bytes.Buffer
	command := a.command(ctx, arguments)
	command.Stdout, command.Stderr = &output, &errors
	if unlocked {
		command.Env = append(command.Env, "POWERCLOUD_PASSPHRASE="+passphrase)
	}
	err := command.Run()
	return result{arguments, output.String(), errors.String(), err}
}

// command is pcctl with the admin certificate alone.
func (a *Admin) command(ctx context.Context, arguments []string) *exec.Cmd {
	command := exec.CommandContext(ctx, a.pcctl, arguments...)
	command.Dir = a.folder
	command.Env = append(os.Environ(), "POWERCLOUD_CONFIG="+string(a.Directory()), "TZ=UTC")
	return command
}

func (a *Admin) succeed(r result) string {
	a.t.Helper()
	if r.err != nil {
		a.t.Fatalf("pcctl %s: %v\n%s%s", strings.Join(r.arguments, " "), r.err, r.output, r.errors)
	}
	return r.output
}
