package tests

import (
	"slices"
	"strings"
	"testing"

	"powercloud.unidatum.com/go/image/release"
)

// TestReleaseList compares what //disk:release is made of with the files that the manual
// says a release has. The sums of their contents come from the step that the small
// release here is made by as well.
func TestReleaseList(t *testing.T) {
	const version = "v2026.11.30"
	var got []string
	for _, name := range strings.Fields(string(read(t, "../release_list.txt"))) {
		named, err := release.Name(name, version)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, named)
	}
	want := []string{
		"pcctl-v2026.11.30-darwin-amd64",
		"pcctl-v2026.11.30-darwin-arm64",
		"pcctl-v2026.11.30-linux-amd64",
		"pcctl-v2026.11.30-linux-arm64",
		"pcctl-v2026.11.30-windows-amd64.exe",
		"powercloud-v2026.11.30-amd64.efi",
		"powercloud-v2026.11.30-amd64.gce.tar.gz",
		"powercloud-v2026.11.30-amd64.img.xz",
		"powercloud-v2026.11.30-amd64.vhd.xz",
		"powercloud-v2026.11.30-arm64.efi",
		"powercloud-v2026.11.30-arm64.gce.tar.gz",
		"powercloud-v2026.11.30-arm64.img.xz",
		"powercloud-v2026.11.30-arm64.vhd.xz",
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("a release has %q, want %q", got, want)
	}
}
