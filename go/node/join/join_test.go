package join

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/go/cluster/joinbundle"
	"powercloud.unidatum.com/go/node/network"
	"powercloud.unidatum.com/go/sys/fwcfg"
	"powercloud.unidatum.com/go/sys/smbios"
	"powercloud.unidatum.com/tests/metadata"
	"powercloud.unidatum.com/tests/namespace"

	sysmetadata "powercloud.unidatum.com/go/sys/metadata"
)

func TestMain(m *testing.M) { namespace.Main(m) }

// lines makes a logger and returns what it has logged, without times.
func lines() (*slog.Logger, func() string) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	return logger, log.String
}

// right is a check that example passes.
func right(b *joinbundle.Bundle) error {
	if string(b.CACertificate) != "the CA's certificate" {
		return errors.New("it is of another cluster")
	}
	return nil
}

// foreign returns a bundle that doesn't pass it.
func foreign() *joinbundle.Bundle {
	b := example()
	b.CACertificate = []byte("another CA's certificate")
	return b
}

// script is user data that isn't a bundle.
const script = "#!/bin/sh\necho SECRET\n"

func TestFind(t *testing.T) {
	good, bad := string(encode(t, example())), string(encode(t, foreign()))
	const (
		notOurs   = `level=INFO msg="this isn't a join bundle, and is ignored" source="QEMU's fw_cfg" bytes=22` + "\n"
		inFirm    = `level=INFO msg="found a join bundle" source="QEMU's fw_cfg"` + "\n"
		inAzure   = `level=INFO msg="found a join bundle" source="user data of Azure"` + "\n"
		badFirm   = `level=WARN msg="invalid join bundle; waiting for console enrollment" source="QEMU's fw_cfg" err=`
		badAzure  = `level=WARN msg="invalid join bundle; waiting for console enrollment" source="user data of Azure" err=`
		noData    = `level=INFO msg="no user data; waiting for console enrollment" cloud=Azure` + "\n"
		unread    = `level=WARN msg="could not read user data; waiting for console enrollment" cloud=Azure err="the wire is cut"` + "\n"
		badSMBIOS = `level=WARN msg="could not read all that SMBIOS says of this machine" err="the wire is cut"` + "\n"
		badRead   = `level=WARN msg="could not read QEMU's fw_cfg file" err="the wire is cut"` + "\n"
	)
	wire := errors.New("the wire is cut")
	// A source returns a text, or an error.
	type source struct {
		text string
		err  error
	}
	none := source{err: fwcfg.ErrNone}
	for name, c := range map[string]struct {
		firmware source
		cloud    smbios.Cloud
		smbios   error
		userData source
		found    bool
		log      string
	}{
		"nowhere":                   {firmware: none, cloud: smbios.None},
		"in QEMU's file":            {firmware: source{text: good}, cloud: smbios.None, found: true, log: inFirm},
		"in QEMU's file, in Azure":  {firmware: source{text: good}, cloud: smbios.Azure, found: true, log: inFirm},
		"in user data":              {firmware: none, cloud: smbios.Azure, userData: source{text: good}, found: true, log: inAzure},
		"QEMU's is something else":  {firmware: source{text: script}, cloud: smbios.None, log: notOurs},
		"and user data is one":      {firmware: source{text: script}, cloud: smbios.Azure, userData: source{text: good}, found: true, log: notOurs + inAzure},
		"QEMU's is empty":           {firmware: source{}, cloud: smbios.None, log: strings.Replace(notOurs, "22", "0", 1)},
		"QEMU's can't be read":      {firmware: source{err: wire}, cloud: smbios.Azure, userData: source{text: good}, found: true, log: badRead + inAzure},
		"QEMU's is damaged":         {firmware: source{text: good[:100]}, cloud: smbios.Azure, log: badFirm + `"invalid join bundle: its JSON can't be read"` + "\n"},
		"QEMU's is another's":       {firmware: source{text: bad}, cloud: smbios.Azure, log: badFirm + `"it is of another cluster"` + "\n"},
		"user data is none":         {firmware: none, cloud: smbios.Azure, userData: source{err: sysmetadata.ErrNone}, log: noData},
		"user data is a script":     {firmware: none, cloud: smbios.Azure, userData: source{text: script}, log: strings.Replace(notOurs, "QEMU's fw_cfg", "user data of Azure", 1)},
		"user data is another's":    {firmware: none, cloud: smbios.Azure, userData: source{text: bad}, log: badAzure + `"it is of another cluster"` + "\n"},
		"user data can't be read":   {firmware: none, cloud: smbios.Azure, userData: source{err: wire}, log: unread},
		"user data is cut short":    {firmware: none, cloud: smbios.Azure, userData: source{text: "#powercloud-join v1"}, log: badAzure + `"invalid join bundle: there is nothing after its first line"` + "\n"},
		"SMBIOS can't be read":      {firmware: none, cloud: smbios.None, smbios: wire, log: badSMBIOS},
		"SMBIOS can be read partly": {firmware: none, cloud: smbios.Azure, smbios: wire, userData: source{text: good}, found: true, log: badSMBIOS + inAzure},
	} {
		var texts [][]byte
		read := func(s source) ([]byte, error) {
			if s.err != nil {
				return nil, s.err
			}
			text := []byte(s.text)
			texts = append(texts, text)
			return text, nil
		}
		log, logged := lines()
		connected := false
		got, err := Find(t.Context(), Sources{
			Firmware:  func() ([]byte, error) { return read(c.firmware) },
			Cloud:     func() (smbios.Cloud, error) { return c.cloud, c.smbios },
			Connected: func(context.Context) error { connected = true; return nil },
			UserData: func(_ context.Context, cloud smbios.Cloud) ([]byte, error) {
				if !connected || cloud != c.cloud || cloud == smbios.None {
					t.Errorf("%s: user data of %q is asked for, connected: %v", name, cloud, connected)
				}
				return read(c.userData)
			},
		}, right, log)
		switch {
		case c.found && (err != nil || !reflect.DeepEqual(got, example())):
			t.Errorf("%s: %v", name, err)
		case !c.found && (!errors.Is(err, ErrNone) || got != nil):
			t.Errorf("%s: found, or %v", name, err)
		}
		if logged() != c.log {
			t.Errorf("%s: the log has\n%swant\n%s", name, logged(), c.log)
		}
		for _, text := range texts {
			if len(bytes.Trim(text, "\x00")) > 0 {
				t.Errorf("%s: a text wasn't cleared", name)
			}
		}
	}
}

func TestRefusedBundlesAreWiped(t *testing.T) {
	var seen *joinbundle.Bundle
	log, _ := lines()
	_, err := Find(t.Context(), Sources{
		Firmware: func() ([]byte, error) { return encode(t, example()), nil },
		Cloud:    func() (smbios.Cloud, error) { return smbios.None, nil },
	}, func(b *joinbundle.Bundle) error {
		seen = b
		return errors.New("no")
	}, log)
	if !errors.Is(err, ErrNone) || seen == nil || seen.NodeKey != (joinbundle.Key{}) || seen.WireGuardKey != (joinbundle.Key{}) || seen.VolumeKey != (joinbundle.Key{}) {
		t.Errorf("%v; a key is left", err)
	}
}

// standIns are the clouds' metadata services with some user data.
func standIns(userData []byte) map[string]metadata.Cloud {
	return map[string]metadata.Cloud{
		"AWS": &metadata.AWS{UserData: userData}, "Google Cloud": &metadata.GoogleCloud{UserData: userData}, "Azure": &metadata.Azure{UserData: userData},
	}
}

// firmware makes a sysfs of a machine in a cloud, and with a file of QEMU's if there
// is one.
func firmware(t *testing.T, cloud, file string) (sysfs string) {
	t.Helper()
	sysfs = t.TempDir()
	for name, content := range map[string]string{
		"class/dmi/id/sys_vendor":        map[string]string{"AWS": "Amazon EC2", "Google Cloud": "Google", "Azure": "Microsoft Corporation", "": "QEMU"}[cloud],
		"class/dmi/id/product_name":      map[string]string{"Google Cloud": "Google Compute Engine"}[cloud],
		"class/dmi/id/chassis_asset_tag": map[string]string{"Azure": "7783-7084-3265-9085-8269-3286-77"}[cloud],

		"firmware/qemu_fw_cfg/by_name/opt/powercloud/join/raw": file,
	} {
		if content == "" {
			continue
		}
		path := filepath.Join(sysfs, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return sysfs
}

// online is a network that has an address.
func online() (network.State, <-chan struct{}) {
	return network.State{Interfaces: []network.Interface{{Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.10/24")}}}}, nil
}

// never are waits that must not happen.
func never(t *testing.T) func(time.Duration) <-chan time.Time {
	return func(d time.Duration) <-chan time.Time {
		if d != longestWait {
			t.Errorf("a wait of %v", d)
		}
		return nil
	}
}

func TestMachineInEachCloud(t *testing.T) {
	for name, standIn := range standIns(encode(t, example())) {
		log, logged := lines()
		m := Machine{
			Sysfs: firmware(t, name, ""), Network: online, Log: log,
			Dial: metadata.Start(t, standIn).Dial, After: never(t),
		}
		got, err := Find(t.Context(), m.Sources(), right, log)
		if err != nil || !reflect.DeepEqual(got, example()) || !strings.Contains(logged(), `msg="found a join bundle" source="user data of `+name+`"`) {
			t.Errorf("%s: %v; the log has\n%s", name, err, logged())
		}
	}
}

func TestMachineInEachCloudAtItsAddress(t *testing.T) {
	for name, standIn := range standIns(encode(t, example())) {
		t.Run(name, func(t *testing.T) {
			metadata.StartIn(t, metadata.Network(t), metadata.Device, standIn)
			log, logged := lines()
			m := Machine{Sysfs: firmware(t, name, ""), Network: online, Log: log}
			if got, err := Find(t.Context(), m.Sources(), right, log); err != nil || !reflect.DeepEqual(got, example()) {
				t.Errorf("%v; the log has\n%s", err, logged())
			}
		})
	}
}

func TestMachineWithTheLargestBundle(t *testing.T) {
	b := example()
	b.Membership = bytes.Repeat([]byte{1}, joinbundle.MaxList)
	b.Revocations = bytes.Repeat([]byte{1}, joinbundle.MaxList)
	text := encode(t, b)
	longer := append(bytes.TrimSuffix(text, []byte("\n")), bytes.Repeat([]byte("A"), joinbundle.MaxSize)...)
	for name := range standIns(nil) {
		log, logged := lines()
		m := Machine{Sysfs: firmware(t, name, ""), Network: online, Log: log, After: never(t), Dial: metadata.Start(t, standIns(text)[name]).Dial}
		if got, err := Find(t.Context(), m.Sources(), right, log); err != nil || !reflect.DeepEqual(got, b) {
			t.Errorf("%s: %v; the log has\n%s", name, err, logged())
		}
		m.Dial = metadata.Start(t, standIns(longer)[name]).Dial
		if _, err := Find(t.Context(), m.Sources(), right, log); !errors.Is(err, ErrNone) || !strings.Contains(logged(), fmt.Sprintf("it has more than %d bytes", joinbundle.MaxSize)) {
			t.Errorf("%s: %v; the log has\n%s", name, err, logged())
		}
	}
	log, logged := lines()
	m := Machine{Sysfs: firmware(t, "", string(longer)), Log: log}
	if _, err := Find(t.Context(), m.Sources(), right, log); !errors.Is(err, ErrNone) || !strings.Contains(logged(), fmt.Sprintf("it has more than %d bytes", joinbundle.MaxSize)) {
		t.Errorf("QEMU's file: %v; the log has\n%s", err, logged())
	}
}

func TestMachineElsewhereAsksNobody(t *testing.T) {
	dial := func(context.Context, string, string) (net.Conn, error) {
		t.Error("a connection is made")
		return nil, io.EOF
	}
	state := func() (network.State, <-chan struct{}) {
		t.Error("the network is awaited")
		return network.State{}, nil
	}
	log, logged := lines()
	m := Machine{Sysfs: firmware(t, "", ""), Network: state, Log: log, Dial: dial, After: never(t)}
	if got, err := Find(t.Context(), m.Sources(), right, log); !errors.Is(err, ErrNone) || got != nil || logged() != "" {
		t.Errorf("%v; the log has\n%s", err, logged())
	}
	// QEMU's file is enough everywhere.
	m.Sysfs = firmware(t, "AWS", string(encode(t, example())))
	if got, err := Find(t.Context(), m.Sources(), right, log); err != nil || !reflect.DeepEqual(got, example()) {
		t.Errorf("%v; the log has\n%s", err, logged())
	}
}

func TestMachineWhoseServiceIsTurnedOff(t *testing.T) {
	log, logged := lines()
	at := make(chan time.Time)
	close(at)
	m := Machine{
		Sysfs: firmware(t, "AWS", ""), Network: online, Log: log,
		Dial: metadata.Start(t, &metadata.AWS{Off: true}).Dial,
		After: func(d time.Duration) <-chan time.Time {
			if d == longestWait {
				return nil
			}
			return at
		},
	}
	if _, err := Find(t.Context(), m.Sources(), right, log); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
	all := logged()
	if strings.Count(all, `msg="metadata service not answering" cloud=AWS`) != 5 ||
		!strings.Contains(all[strings.LastIndex(strings.TrimSpace(all), "\n"):], `level=WARN msg="could not read user data; waiting for console enrollment" cloud=AWS err="metadata service not answering in 5 tries: `) {
		t.Errorf("the log has\n%s", all)
	}
}

func TestMachineWaitsForAnAddress(t *testing.T) {
	log, logged := lines()
	changed, enough := make(chan struct{}), make(chan time.Time)
	asked := make(chan struct{}, 10)
	state := network.State{}
	m := Machine{
		Log: log,
		Network: func() (network.State, <-chan struct{}) {
			now := state
			asked <- struct{}{}
			return now, changed
		},
		After: func(time.Duration) <-chan time.Time { return enough },
	}
	ended := make(chan error)
	wait := func(ctx context.Context) { ended <- m.Sources().Connected(ctx) }
	// Another change than an address, then an address.
	go wait(t.Context())
	<-asked
	changed <- struct{}{}
	<-asked
	state, _ = online()
	changed <- struct{}{}
	if err := <-ended; err != nil || logged() != "" {
		t.Errorf("%v; the log has %s", err, logged())
	}
	// None for a minute.
	state = network.State{}
	go wait(t.Context())
	enough <- time.Time{}
	if err := <-ended; err != nil || !strings.Contains(logged(), "no address yet; asking the metadata service all the same") {
		t.Errorf("%v; the log has %s", err, logged())
	}
	// None until the node ends.
	ctx, stop := context.WithCancel(t.Context())
	stop()
	go wait(ctx)
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestFindEndsWithItsContext(t *testing.T) {
	log, logged := lines()
	ctx, stop := context.WithCancel(t.Context())
	m := Machine{Sysfs: firmware(t, "Azure", ""), Network: online, Log: log, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		stop()
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	if _, err := Find(ctx, m.Sources(), right, log); !errors.Is(err, context.Canceled) || logged() != "" {
		t.Errorf("%v; the log has\n%s", err, logged())
	}
}
