// Package transcripts runs the command examples of the manual, and scripts of
// pcctl sessions beside it, and compares what they print with what is written.
//
// # Scripts
//
// testdata/*.txtar are scripts of the module testscript, with pcctl as a
// command. Besides testscript's own commands there are
//
//	exits N COMMAND...   runs a command that must end with status N
//	console FILE         runs a console session, as in the manual
//	network FILE         runs one in a network of its own
//	recovery             has later commands unlock with the recovery key that was
//	                     printed last, which takes no time, unlike a passphrase
//
// # The manual
//
// Each page docs/*.md is one session, in a directory of its own that is empty
// at first. It is made of the page's fenced blocks of the kind "console", and
// of HTML comments that begin with "<!-- console" for what readers needn't see:
//
//	```console
//	$ pcctl --repo ./home,./colo,./cloud ls
//	          18  2026-10-29 01:16  docs/notes.txt
//	```
//
// A line that begins with "$ " is a command for sh, a line that begins with
// "> " continues it, and the lines up to the next command are what it prints on
// standard output and standard error. A variable set or a directory entered
// stays so. A command must succeed, unless the last line it prints begins with
// "pcctl: "; then it must fail. A line that begins with "# " is a remark.
//
// A line that begins with "& " is a command that goes on, as in another terminal. On
// pages, those of a block "console background" are. The session waits until the lines
// below it are printed; what is printed later isn't compared. Codes of eight groups
// that were printed take the place of those that are written, in all later commands.
// After it "$ wait $!" waits for its end, and for its success.
//
// A page with "<!-- network -->" has a network of its own, in which there is nothing
// but 127.0.0.1. The condition "network" tells whether that is to be had.
//
// Cluster IDs and other hexadecimal strings of at least 16 digits, recovery
// keys, and dates with times match any other of their kind; HEX, KEY and DATE
// do too. "..." in a line matches anything, and as a whole line any number of
// lines. Everything else, spaces included, must be the same.
//
// pcctl finds the passphrase in POWERCLOUD_PASSPHRASE, times are in UTC.
//
// http://minio.lan:9000 is a real S3 server, which is reached through a proxy. It
// has a bucket "my-bucket", which all scripts share, and takes the credentials of
// creds=minio, which are in the environment.
package transcripts

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"powercloud.unidatum.com/go/admin/pcctl"
	"powercloud.unidatum.com/tests/s3proxy"
	"powercloud.unidatum.com/tests/s3server"
)

// docs is where the manual's pages are.
const docs = "../../docs"

func TestMain(m *testing.M) {
	programs := map[string]func(){
		"pcctl":      func() { os.Exit(pcctl.Main()) },
		"background": func() { os.Exit(background()) },
	}
	maps.Copy(programs, systemPrograms)
	testscript.Main(m, programs)
}

func TestScripts(t *testing.T) {
	testscript.Run(t, params(t, "testdata"))
}

func TestManual(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(docs, "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages in %s (%v)", docs, err)
	}
	scripts := t.TempDir()
	examples := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		command, session, err := extract(string(text))
		if err != nil {
			t.Errorf("%s: %v", page, err)
		}
		if session == "" {
			continue
		}
		examples++
		script := command + " session\n-- session --\n" + session
		if command == "network" {
			script = "[!network] skip 'there are no networks for single programs here'\n" + script
		}
		name := strings.TrimSuffix(filepath.Base(page), ".md") + ".txtar"
		if err := os.WriteFile(filepath.Join(scripts, name), []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if examples == 0 {
		t.Fatalf("no page in %s has an example", docs)
	}
	testscript.Run(t, params(t, scripts))
}

func params(t *testing.T, dir string) testscript.Params {
	t.Helper()
	server := s3server.Start(t)
	if _, err := server.Bucket("my-bucket"); err != nil {
		t.Fatal(err)
	}
	proxy := s3proxy.Start(t, server.Endpoint)
	canBeAlone := sync.OnceValue(func() bool { return exec.Command("alone", "true").Run() == nil })
	return testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("POWERCLOUD_PASSPHRASE", "correct horse battery staple")
			// Beside the working directory, so that no script stores it.
			env.Setenv("POWERCLOUD_CONFIG", env.WorkDir+"-config")
			env.Setenv("TZ", "UTC")
			env.Setenv("LC_ALL", "C.UTF-8")
			env.Setenv("HTTP_PROXY", proxy.URL)
			env.Setenv("MINIO_ACCESS_KEY_ID", server.KeyID)
			env.Setenv("MINIO_SECRET_ACCESS_KEY", server.Secret)
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name != "network" {
				return false, fmt.Errorf("there is no condition %q", name)
			}
			return canBeAlone(), nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":    exits,
			"console":  console,
			"network":  network,
			"recovery": recovery,
		},
	}
}

// exits runs a command and compares its exit status.
func exits(ts *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND [ARGUMENT...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%s: %v", args[1], err)
	}
	if got != want {
		ts.Fatalf("%s ended with status %d, not %d", args[1], got, want)
	}
}

// recovery sets the environment to the recovery key that was printed last.
func recovery(ts *testscript.TestScript, negated bool, args []string) {
	key := recoveryKey.FindString(ts.ReadFile("stdout"))
	if negated || len(args) > 0 || key == "" {
		ts.Fatalf("usage: recovery, after a command that printed a recovery key")
	}
	ts.Setenv("POWERCLOUD_RECOVERY_KEY", key)
}
