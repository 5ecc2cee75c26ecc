package clouds

import (
	"context"
	"os"
	"strings"
	"testing"

	"powercloud.unidatum.com/tests/admin"
	"powercloud.unidatum.com/tests/dhcp"
	"powercloud.unidatum.com/tests/machine"
	"powercloud.unidatum.com/tests/metadata"
	"powercloud.unidatum.com/tests/namespace"
	"powercloud.unidatum.com/tests/node"
)

// TestMain has the tests run in network namespaces of their own: see TestClouds.
func TestMain(m *testing.M) { namespace.Main(m) }

// name is that of every node here.
const name = "web-1"

// cloud is a stand-in for a cloud: its metadata service, and what its firmware says.
type cloud struct {
	service func(userData []byte) metadata.Cloud
	smbios  []string
}

func clouds() map[string]cloud {
	return map[string]cloud{
		"AWS": {
			func(b []byte) metadata.Cloud { return &metadata.AWS{UserData: b} },
			[]string{"-smbios", "type=1,manufacturer=Amazon EC2"},
		},
		"Google Cloud": {
			func(b []byte) metadata.Cloud { return &metadata.GoogleCloud{UserData: b} },
			[]string{"-smbios", "type=1,manufacturer=Google,product=Google Compute Engine"},
		},
		"Azure": {
			func(b []byte) metadata.Cloud { return &metadata.Azure{UserData: b} },
			[]string{"-smbios", "type=1,manufacturer=Microsoft Corporation,product=Virtual Machine",
				"-smbios", "type=3,asset=7783-7084-3265-9085-8269-3286-77"},
		},
	}
}

// TestClouds has a node join by the user data of each cloud, from a stand-in for its
// metadata service at the address that it has there.
func TestClouds(t *testing.T) {
	for title, c := range clouds() {
		t.Run(title, func(t *testing.T) {
			ctx := machine.Patient(t)
			a := admin.New(ctx, t)
			a.Unlocked(ctx, "node", "provision", "--addr", dhcp.Leased, name, a.Path("bundle"))
			bundle, err := os.ReadFile(a.Path("bundle"))
			if err != nil {
				t.Fatal(err)
			}
			image, architecture := machine.Image(t)
			config := node.Machine(architecture, image)
			config.Arguments = c.smbios
			servers := inCloud(t, &config, c.service(bundle))
			m := machine.Start(ctx, t, config)
			m.Expect(ctx, `found a join bundle.* source="?user data of `+title)
			m.Expect(ctx, `joined the cluster with a join bundle`)
			m.Expect(ctx, `PowerCloud node web-1 \([0-9a-f]{16}\) is a member of the cluster`)
			if status := from(ctx, t, servers, a, "status"); !strings.HasSuffix(status, "all nodes healthy\n") {
				t.Errorf("of a node that has joined, status says\n%s", status)
			}
		})
	}
}

// inCloud plugs a machine into a network with a DHCP server and a cloud's metadata
// service, and returns where those are.
func inCloud(t *testing.T, config *machine.Config, service metadata.Cloud) *namespace.Namespace {
	t.Helper()
	network, servers := dhcp.Start(t)
	metadata.StartIn(t, servers, dhcp.Interface, service)
	config.Cards[0] = machine.Card{Network: network}
	return servers
}

// from runs pcctl with the admin certificate alone where the servers are.
func from(ctx context.Context, t *testing.T, servers *namespace.Namespace, a *admin.Admin, arguments ...string) (output string) {
	t.Helper()
	if err := servers.Do(func() error {
		output = a.Run(ctx, arguments...)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return output
}
