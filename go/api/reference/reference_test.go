package reference

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/go/api/route"
)

// page is where the text is kept.
const page = "../../../docs/api.md"

var write = flag.Bool("write", false, "write "+page)

func TestPage(t *testing.T) {
	if *write {
		if err := os.WriteFile(page, []byte(Text()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(kept) != Text() {
		t.Error("docs/api.md isn't what the table of routes says; mend it: go test ./go/api/reference -write")
	}
}

func TestEveryRoute(t *testing.T) {
	text := Text()
	for _, r := range route.All() {
		if strings.Count(text, "| `"+r.Method+" "+r.Path+"` |") != 1 {
			t.Errorf("%s isn't in the page once", r.Name)
		}
	}
}

func TestWords(t *testing.T) {
	for n, want := range map[int64]string{0: "none", 1000: "1000 bytes", 16 << 10: "16 KiB", 3 << 20: "3 MiB"} {
		if got := size(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
	for d, want := range map[time.Duration]string{90 * time.Second: "90 s", 2 * time.Minute: "2 min"} {
		if got := duration(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}
