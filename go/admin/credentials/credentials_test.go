package credentials

import (
	"bytes"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"powercloud.unidatum.com/go/admin/configuration"
	"powercloud.unidatum.com/go/keys/keystest"
	"powercloud.unidatum.com/go/pki"
)

func now() time.Time { return time.Date(2026, 10, 28, 9, 0, 0, 0, time.UTC) }

func newCA(t *testing.T, cluster keystest.Cluster) *pki.CA {
	t.Helper()
	ca, err := pki.NewCA(cluster.Root(t), cluster.ID)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func newDirectory(t *testing.T) configuration.Directory {
	return configuration.Directory(filepath.Join(t.TempDir(), "config"))
}

func issue(t *testing.T, dir configuration.Directory, ca *pki.CA, at time.Time) *Credentials {
	t.Helper()
	if err := Issue(dir, ca, at, rand.Reader); err != nil {
		t.Fatal(err)
	}
	return load(t, dir)
}

func load(t *testing.T, dir configuration.Directory) *Credentials {
	t.Helper()
	c, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestIssue(t *testing.T) {
	dir, ca := newDirectory(t), newCA(t, keystest.First(t))
	if _, err := Load(dir); !errors.Is(err, ErrNone) || err.Error() != "no admin credentials (run 'pcctl --repo ... login')" {
		t.Errorf("before: %v", err)
	}
	if _, err := Authority(dir); !errors.Is(err, ErrNone) {
		t.Errorf("before: %v", err)
	}
	first := issue(t, dir, ca, now())
	if first.Identity.Role != pki.RoleAdmin || !first.Identity.Issued.Equal(now()) || first.Identity.Cluster != keystest.First(t).ID {
		t.Errorf("%+v", first.Identity)
	}
	entries, err := os.ReadDir(string(dir))
	if err != nil || len(entries) != 4 { // The lock, too.
		t.Errorf("the directory has %v, %v", entries, err)
	}
	second := issue(t, dir, newCA(t, keystest.Second(t)), now())
	if first.Key.Equal(second.Key) || second.Identity.Cluster != keystest.Second(t).ID {
		t.Error("the key stayed, or the cluster")
	}
	if authority, err := Authority(dir); err != nil || authority.Fingerprint() != second.Authority.Fingerprint() {
		t.Error(err)
	}
	if err := Issue("", ca, now(), rand.Reader); !errors.Is(err, configuration.ErrNone) {
		t.Error(err)
	}
	if err := Issue(dir, ca, now(), bytes.NewReader(nil)); err == nil {
		t.Error("a key was made of nothing")
	}
}

func TestCheck(t *testing.T) {
	c := issue(t, newDirectory(t), newCA(t, keystest.First(t)), now())
	for _, test := range []struct {
		at   time.Time
		want error
	}{{now(), nil}, {now().Add(pki.AdminLifetime), nil}, {now().Add(pki.AdminLifetime + 1), ErrExpired}} {
		if err := c.Check(test.at); !errors.Is(err, test.want) {
			t.Errorf("at %s: %v", test.at, err)
		}
	}
	if ErrExpired.Error() != "admin certificate expired (run 'pcctl --repo ... login')" {
		t.Error(ErrExpired)
	}
}

func TestDue(t *testing.T) {
	dir, ca := newDirectory(t), newCA(t, keystest.First(t))
	if due, err := Due(dir, ca.Authority(), now()); due || err != nil {
		t.Errorf("without credentials: %v, %v", due, err)
	}
	issue(t, dir, ca, now())
	for after, want := range map[time.Duration]bool{
		0: false, 23*24*time.Hour - 1: false, 23 * 24 * time.Hour: true, 29 * 24 * time.Hour: true, 90 * 24 * time.Hour: true,
	} {
		if due, err := Due(dir, ca.Authority(), now().Add(after)); due != want || err != nil {
			t.Errorf("after %s: %v, %v", after, due, err)
		}
	}
	other := newCA(t, keystest.Second(t)).Authority()
	if due, err := Due(dir, other, now().Add(29*24*time.Hour)); due || err != nil {
		t.Errorf("another cluster's: %v, %v", due, err)
	}
	if err := dir.Write(certificateFile, nil); err != nil {
		t.Fatal(err)
	}
	if due, err := Due(dir, ca.Authority(), now()); due || !errors.Is(err, ErrDamaged) {
		t.Errorf("damaged: %v, %v", due, err)
	}
}

// TestCutAtEveryStep interrupts a replacement after each of its steps.
func TestCutAtEveryStep(t *testing.T) {
	ca, other := newCA(t, keystest.First(t)), newCA(t, keystest.Second(t))
	took := 0
	for cut := 0; ; cut++ {
		dir := newDirectory(t)
		before := issue(t, dir, ca, now())
		steps, err := replacement(dir, other, now().Add(time.Hour), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if cut > len(steps) {
			break
		}
		for _, step := range steps[:cut] {
			if err := step(); err != nil {
				t.Fatal(err)
			}
		}
		after := load(t, dir)
		if !after.Certificate.Equal(before.Certificate) {
			took++
			if after.Identity.Cluster != keystest.Second(t).ID {
				t.Errorf("cut after %d steps: %+v", cut, after.Identity)
			}
		}
		if again := load(t, dir); !again.Certificate.Equal(after.Certificate) {
			t.Errorf("cut after %d steps: it changes when it is read", cut)
		}
		// What is left of it doesn't disturb the next.
		if next := issue(t, dir, ca, now().Add(2*time.Hour)); next.Identity.Cluster != keystest.First(t).ID {
			t.Errorf("cut after %d steps: then %+v", cut, next.Identity)
		}
	}
	if took != 4 {
		t.Errorf("the new credentials were there after %d of the cuts, instead of 4", took)
	}
}

func TestDamage(t *testing.T) {
	first, second := newCA(t, keystest.First(t)), newCA(t, keystest.Second(t))
	elsewhere := newDirectory(t)
	issue(t, elsewhere, second, now())
	for title, damage := range map[string]func(dir configuration.Directory) error{
		"no key":         func(dir configuration.Directory) error { return os.Remove(filepath.Join(string(dir), keyFile)) },
		"no authority":   func(dir configuration.Directory) error { return os.Remove(filepath.Join(string(dir), authorityFile)) },
		"empty key":      func(dir configuration.Directory) error { return dir.Write(keyFile, nil) },
		"empty":          func(dir configuration.Directory) error { return dir.Write(certificateFile, nil) },
		"no authority's": func(dir configuration.Directory) error { return dir.Write(authorityFile, []byte("x")) },
		"other key": func(dir configuration.Directory) error {
			text, err := elsewhere.Read(keyFile, maxFile)
			return errors.Join(err, dir.Write(keyFile, text))
		},
		"other authority": func(dir configuration.Directory) error {
			text, err := elsewhere.Read(authorityFile, maxFile)
			return errors.Join(err, dir.Write(authorityFile, text))
		},
		"other certificate": func(dir configuration.Directory) error {
			text, err := elsewhere.Read(certificateFile, maxFile)
			return errors.Join(err, dir.Write(certificateFile, text))
		},
		"a node's": func(dir configuration.Directory) error {
			c, err := Load(dir)
			if err != nil {
				return err
			}
			node, err := first.IssueNode(c.Identity.Key, now(), pki.NodeLifetime, rand.Reader)
			return errors.Join(err, dir.Write(certificateFile, pki.MarshalCertificate(node)))
		},
	} {
		dir := newDirectory(t)
		issue(t, dir, first, now())
		if err := damage(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(dir); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", title, err)
		}
		issue(t, dir, first, now())
	}
}
