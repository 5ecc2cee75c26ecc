package pcctl

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/go/admin/configuration"
	"powercloud.unidatum.com/go/admin/credentials"
	"powercloud.unidatum.com/go/admin/session"
	"powercloud.unidatum.com/go/cluster/registry"
	"powercloud.unidatum.com/go/keys/keystest"
	"powercloud.unidatum.com/go/pki"
)

const day = 24 * time.Hour

// newLogin returns a trial with a configuration directory.
func newLogin(t *testing.T) (*trial, configuration.Directory) {
	t.Helper()
	s := newTrial(t)
	s.config = filepath.Join(t.TempDir(), "config")
	return s, configuration.Directory(s.config)
}

func load(t *testing.T, dir configuration.Directory) *credentials.Credentials {
	t.Helper()
	c, err := credentials.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestLogin(t *testing.T) {
	s, dir := newLogin(t)
	s.want(0, "login")
	s.wantStdout("admin certificate for cluster " + s.bed.Cluster.ID.String() + " written to " + s.config + " (valid 30 days)\n")
	s.wantStderr("")
	first := load(t, dir)
	if err := first.Check(s.bed.Now.Add(30*day - time.Second)); err != nil {
		t.Error(err)
	}
	if err := first.Check(s.bed.Now.Add(30*day + time.Second)); !errors.Is(err, credentials.ErrExpired) {
		t.Error(err)
	}
	for _, name := range []string{"admin.key", "admin.crt", "ca.crt"} {
		info, err := os.Stat(filepath.Join(s.config, name))
		if err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if info, err := os.Stat(s.config); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
		t.Errorf("the directory: %v, %v", info, err)
	}
	s.want(0, "login", "--json")
	s.wantStdout(`{"cluster":"` + s.bed.Cluster.ID.String() + `","directory":` + strconv.Quote(s.config) + `,"expires":"2026-02-01T03:04:05Z"}` + "\n")
	if second := load(t, dir); second.Key.Equal(first.Key) || second.Certificate.Equal(first.Certificate) {
		t.Error("the second login wrote nothing new")
	}
	s.want(2, "login", "x")
	s.config = ""
	s.want(1, "login")
	s.wantStderr("pcctl: there is no configuration directory; set POWERCLOUD_CONFIG to one\n")
}

// TestRenewal: a command that unlocks the cluster renews a certificate that is due,
// and nothing else.
func TestRenewal(t *testing.T) {
	s, dir := newLogin(t)
	start := s.bed.Now
	s.want(0, "ls")
	if has, err := credentials.Exist(dir); has || err != nil {
		t.Errorf("a command that isn't login wrote a certificate (%v)", err)
	}
	s.want(0, "login")
	first := load(t, dir)
	s.bed.Now = start.Add(23*day - time.Second)
	s.want(0, "ls")
	s.wantStderr("")
	if !load(t, dir).Certificate.Equal(first.Certificate) {
		t.Error("renewed too early")
	}
	for _, args := range [][]string{{"ls"}, {"check"}, {"gc", "--dry-run"}, {"put", "a", s.file("a", "")}} {
		before := load(t, dir)
		s.bed.Now = before.Identity.Expires.Add(-7 * day)
		s.want(0, args...)
		s.wantStderr("admin certificate renewed (valid 30 days)\n")
		if after := load(t, dir); !after.Identity.Expires.Equal(s.bed.Now.Truncate(time.Second).Add(30 * day)) {
			t.Errorf("pcctl %q: valid to %s", args, after.Identity.Expires)
		}
		s.want(0, args...)
		s.wantStderr("")
	}
	// One that has expired is renewed as well.
	s.bed.Now = s.bed.Now.Add(90 * day)
	s.want(0, "ls")
	s.wantStderr("admin certificate renewed (valid 30 days)\n")
	s.bed.Now = s.bed.Now.Add(29 * day)
	s.want(0, "login")
	s.wantStderr("")
}

// TestOtherClustersCertificateStays: a command on one cluster doesn't renew the
// certificate for another.
func TestOtherClustersCertificateStays(t *testing.T) {
	s, dir := newLogin(t)
	second := keystest.Second(t)
	ca, err := pki.NewCA(second.Root(t), second.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := credentials.Issue(dir, ca, s.bed.Now, rand.Reader); err != nil {
		t.Fatal(err)
	}
	s.bed.Now = s.bed.Now.Add(29 * day)
	s.want(0, "ls")
	s.wantStderr("")
	if load(t, dir).Identity.Cluster != second.ID {
		t.Error("it was replaced")
	}
}

// TestDamagedCredentials don't keep a command from its work, nor login from its own.
func TestDamagedCredentials(t *testing.T) {
	s, dir := newLogin(t)
	s.want(0, "login")
	if err := os.Remove(filepath.Join(s.config, "admin.key")); err != nil {
		t.Fatal(err)
	}
	s.want(0, "ls")
	if want := "warning: the admin certificate was not renewed: admin credentials are damaged (run 'pcctl --repo ... login')"; !strings.HasPrefix(s.stderr.String(), want) {
		t.Error(s.stderr.String())
	}
	s.want(0, "login")
	s.wantStderr("")
	load(t, dir)
}

// TestLoginAfterRevocation: the clock of who revoked the admins' certificates was
// ahead, and still the new one is good.
func TestLoginAfterRevocation(t *testing.T) {
	s, dir := newLogin(t)
	objects := session.SystemObjects{Store: s.bed.Open()}
	revoked, err := registry.Update(t.Context(), objects, s.bed.Cluster.ID, func(r *registry.Registry) error {
		r.Revoked = r.Revoked.WithAdmins(s.bed.Now.Add(10 * time.Minute))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.want(0, "login")
	if err := revoked.Revoked.Check(load(t, dir).Identity); err != nil {
		t.Error(err)
	}
	// A registry that can't be read doesn't lock anybody out.
	if err := objects.Write(t.Context(), registry.Folder+"x", []byte("x")); err != nil {
		t.Fatal(err)
	}
	s.want(0, "login")
	if !strings.HasPrefix(s.stderr.String(), "warning: whether admin certificates were revoked could not be found out: ") {
		t.Error(s.stderr.String())
	}
}
