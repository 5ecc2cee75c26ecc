package metadata

import (
	"net/http"
	"net/netip"
)

// GoogleCloud is Compute Engine's metadata server:
//
//   - A request needs the header Metadata-Flavor with the value Google, and is refused
//     with 403 otherwise.
//   - A request with the header X-Forwarded-For is refused with 403.
//   - Every answer has the header Metadata-Flavor with the value Google, by which a
//     client knows the server.
//   - An attribute that the machine doesn't have is answered with 404.
//
// https://cloud.google.com/compute/docs/metadata/querying-metadata and
// https://cloud.google.com/compute/docs/metadata/overview
type GoogleCloud struct {
	// UserData is the attribute user-data; nil where the machine has none. An
	// attribute takes 256 KiB at most.
	UserData []byte
}

func (*GoogleCloud) addresses() []netip.Addr {
	return []netip.Addr{linkLocal(), netip.MustParseAddr("fd20:ce::254")}
}

// ServeHTTP answers one request.
func (g *GoogleCloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Server", "Metadata Server for VM")
	w.Header().Set("Metadata-Flavor", "Google")
	switch {
	case r.Header.Get("Metadata-Flavor") != "Google", r.Header.Values("X-Forwarded-For") != nil:
		refuse(w, http.StatusForbidden)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		refuse(w, http.StatusMethodNotAllowed)
	case r.URL.Path != "/computeMetadata/v1/instance/attributes/user-data" || g.UserData == nil:
		refuse(w, http.StatusNotFound)
	default:
		w.Header().Set("Content-Type", "application/text")
		_, _ = w.Write(g.UserData)
	}
}
