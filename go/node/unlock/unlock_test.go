package unlock

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/api/server"
	"powercloud.unidatum.com/go/cluster/volumeid"
	"powercloud.unidatum.com/go/keys/code"
	"powercloud.unidatum.com/go/node/volume/header"
	"powercloud.unidatum.com/go/pki"
)

func owner() header.Owner {
	return header.Owner{Volume: volumeid.ID{1}, Node: pki.NodeID{2}, Name: "home-1"}
}

// other is what a forged copy of the header says.
func other() header.Owner {
	return header.Owner{Volume: volumeid.ID{5}, Node: pki.NodeID{6}, Name: "home-2"}
}

// rightKey opens the volume of the tests.
func rightKey() message.Key { return message.Key{3} }

func newDesk(t *testing.T, log *bytes.Buffer, open func(*header.Key) error) *Desk {
	t.Helper()
	d, err := New(Config{Owners: []header.Owner{owner(), other()}, Open: open, Random: rand.Reader, Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestUnlock(t *testing.T) {
	broken := errors.New("the disk is broken")
	var log bytes.Buffer
	var kept *header.Key
	d := newDesk(t, &log, func(key *header.Key) error {
		kept = key
		switch message.Key(*key) {
		case rightKey():
			return nil
		case message.Key{9}:
			return broken
		}
		return header.ErrWrongKey
	})
	for name, test := range map[string]struct {
		request message.Unlock
		code    string
		err     error
	}{
		"the key":        {message.Unlock{Volume: owner().Volume, VolumeKey: rightKey()}, "", nil},
		"another owner":  {message.Unlock{Volume: other().Volume, VolumeKey: rightKey()}, "", nil},
		"another key":    {message.Unlock{Volume: owner().Volume, VolumeKey: message.Key{4}}, message.CodeUnlock, nil},
		"no key":         {message.Unlock{Volume: owner().Volume}, message.CodeUnlock, nil},
		"another volume": {message.Unlock{Volume: volumeid.ID{7}, VolumeKey: rightKey()}, message.CodeUnlock, nil},
		"no volume":      {message.Unlock{VolumeKey: rightKey()}, message.CodeUnlock, nil},
		"a broken disk":  {message.Unlock{Volume: owner().Volume, VolumeKey: message.Key{9}}, "", broken},
	} {
		kept = nil
		request := test.request
		_, err := d.unlock(t.Context(), server.Caller{Address: "192.0.2.1:1"}, &request)
		switch {
		case test.code != "" && !message.HasCode(err, test.code), test.code == "" && !errors.Is(err, test.err), test.code == "" && test.err == nil && err != nil:
			t.Errorf("%s: %v", name, err)
		}
		if strings.HasSuffix(name, "volume") && kept != nil {
			t.Errorf("%s: the key was tried", name)
		}
		if request.VolumeKey != (message.Key{}) || kept != nil && *kept != (header.Key{}) {
			t.Errorf("%s: the key is left in memory", name)
		}
	}
	if lines := strings.Count(log.String(), "level=WARN"); lines != 2 {
		t.Errorf("the log has %d lines of two wrong keys:\n%s", lines, log.String())
	}
}

// TestTwoAtOnce unlocks a node that is being unlocked: one after the other, and who
// doesn't wait leaves.
func TestTwoAtOnce(t *testing.T) {
	began, end := make(chan struct{}), make(chan struct{})
	at, most := 0, 0
	d := newDesk(t, new(bytes.Buffer), func(*header.Key) error {
		at++
		most = max(most, at)
		began <- struct{}{}
		<-end
		at--
		return nil
	})
	ask := func(ctx context.Context) error {
		_, err := d.unlock(ctx, server.Caller{}, &message.Unlock{Volume: owner().Volume, VolumeKey: rightKey()})
		return err
	}
	first, second := make(chan error), make(chan error)
	go func() { first <- ask(t.Context()) }()
	<-began
	go func() { second <- ask(t.Context()) }()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := ask(gone); !message.HasCode(err, message.CodeBusy) {
		t.Errorf("who leaves: %v", err)
	}
	end <- struct{}{}
	if err := <-first; err != nil {
		t.Errorf("the first: %v", err)
	}
	<-began
	end <- struct{}{}
	if err := <-second; err != nil {
		t.Errorf("the second: %v", err)
	}
	if most != 1 {
		t.Errorf("the volume was being opened %d times at once", most)
	}
}

// TestCode states that the code is the fingerprint of the key, and that of no other node.
func TestCode(t *testing.T) {
	first, second := newDesk(t, nil, nil), newDesk(t, nil, nil)
	if first.Code() == second.Code() {
		t.Error("two desks have the same code")
	}
	b, err := code.Parse(first.Code(), pki.FingerprintSize)
	if err != nil {
		t.Fatal(err)
	}
	want, err := pki.FingerprintOf(first.Key().Public().(ed25519.PublicKey))
	if err != nil || !bytes.Equal(b, want[:]) {
		t.Errorf("the code is %x, and the fingerprint %x (%v)", b, want[:], err)
	}
}
