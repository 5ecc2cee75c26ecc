package metadata

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"time"
)

// Azure is the Azure Instance Metadata Service:
//
//   - A request needs the header Metadata with the value true, and mustn't have
//     X-Forwarded-For. Otherwise it is answered with 400.
//   - The query must name an API version, which for userData is 2021-01-01 or later.
//     Without one, the answer is 400.
//   - A single value needs format=text in the query.
//   - Other methods than GET are answered with 405.
//   - User data comes in base64, and empty where the machine has none.
//
// https://learn.microsoft.com/en-us/azure/virtual-machines/instance-metadata-service
// and https://learn.microsoft.com/en-us/azure/virtual-machines/user-data
type Azure struct {
	// UserData is nil where the machine has none. Azure takes 64 KiB at most.
	UserData []byte
}

// firstUserData is the first API version with user data.
const firstUserData = "2021-01-01"

func (*Azure) addresses() []netip.Addr { return []netip.Addr{linkLocal()} }

// ServeHTTP answers one request.
func (a *Azure) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	version := query.Get("api-version")
	_, err := time.Parse(time.DateOnly, version)
	switch {
	case r.Method != http.MethodGet:
		refuseAzure(w, http.StatusMethodNotAllowed, "Method not allowed")
	case r.Header.Get("Metadata") != "true":
		refuseAzure(w, http.StatusBadRequest, "Bad request. Required metadata header not specified")
	case r.Header.Values("X-Forwarded-For") != nil:
		refuseAzure(w, http.StatusBadRequest, "Bad request. X-Forwarded-For header is not allowed")
	case err != nil:
		refuseAzure(w, http.StatusBadRequest, "Bad request. api-version was not specified in the request")
	case r.URL.Path != "/metadata/instance/compute/userData" || version < firstUserData:
		refuseAzure(w, http.StatusNotFound, "Not found")
	case query.Get("format") != "text":
		refuseAzure(w, http.StatusBadRequest, "Bad request. The requested value isn't available in that format")
	default:
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Server", "IMDS/150.870.65.1854")
		_, _ = io.WriteString(w, base64.StdEncoding.EncodeToString(a.UserData))
	}
}

// refuseAzure answers with a status and a document about it.
func refuseAzure(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "{ \"error\": %q }", message)
}
