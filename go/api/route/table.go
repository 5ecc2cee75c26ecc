package route

import (
	"net/http"
	"time"

	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/pki/document"
)

// documentSize is that of a message with a signed document, which is in base64.
const documentSize = int64(document.MaxSize)/3*4 + small

// GetOffer asks what is to be enrolled.
func GetOffer() Call[message.None, message.Offer] {
	return Call[message.None, message.Offer]{Route{Name: "offer", Method: http.MethodPost, Path: "/v1/enrollment/offer", State: Blank, Callers: Anyone,
		MaxRequest: small, MaxAnswer: small, Timeout: quick,
		Purpose: "What a node is that can be enrolled. The request proves that its sender knows the enrollment code."}}
}

// Enroll makes the node a member of a cluster.
func Enroll() Call[message.Enrollment, message.Enrolled] {
	return Call[message.Enrollment, message.Enrolled]{Route{Name: "enroll", Method: http.MethodPost, Path: "/v1/enrollment", State: Blank, Callers: Anyone,
		MaxRequest: small, MaxAnswer: small, Timeout: 2 * time.Minute,
		Purpose: "Makes the node a member of a cluster: it creates its state volume, keeps its certificates and key there, and from then on serves the cluster alone. The request proves that its sender knows the enrollment code. The same request may come again."}}
}

// GetLock asks what is to be unlocked.
func GetLock() Call[message.None, message.Lock] {
	return Call[message.None, message.Lock]{Route{Name: "lock", Method: http.MethodGet, Path: "/v1/lock", State: Locked, Callers: Anyone,
		MaxAnswer: small, Timeout: quick,
		Purpose: "Whose state volume waits for its key. Nothing of it is authentic."}}
}

// Unlock opens the state volume.
func Unlock() Call[message.Unlock, message.None] {
	return Call[message.Unlock, message.None]{Route{Name: "unlock", Method: http.MethodPost, Path: "/v1/unlock", State: Locked, Callers: Anyone,
		MaxRequest: small, MaxAnswer: small, Timeout: time.Minute,
		Purpose: "Opens the state volume with the key that wraps its own. The node answers when it is open."}}
}

// GetInfo asks for a node's details.
func GetInfo() Call[message.None, message.Info] {
	return Call[message.None, message.Info]{get("info", "/v1/info", "All that `pcctl node info` shows.", medium)}
}

// GetStatus asks how a node is.
func GetStatus() Call[message.None, message.Status] {
	return Call[message.None, message.Status]{get("status", "/v1/status", "What `pcctl status` shows, in short.", medium)}
}

// GetMesh asks for what the cluster must know for the mesh.
func GetMesh() Call[message.None, message.MeshKey] {
	return Call[message.None, message.MeshKey]{get("mesh", "/v1/mesh", "The public key of the node's WireGuard.", small)}
}

// GetRevocations asks for the revocation list. Signed is empty where there is none yet.
func GetRevocations() Call[message.None, message.Document] {
	return Call[message.None, message.Document]{get("revoked", "/v1/revocations",
		"The signed revocation list that the node has, if any.", documentSize)}
}

// PutMembership hands a node the membership list.
func PutMembership() Call[message.Document, message.Serial] {
	return Call[message.Document, message.Serial]{change("membership", http.MethodPut, "/v1/membership",
		"Hands the node a membership list. It keeps the newest one, and refuses one that is older than its own.", documentSize)}
}

// PutRevocations hands a node the revocation list.
func PutRevocations() Call[message.Document, message.Serial] {
	return Call[message.Document, message.Serial]{change("revocations", http.MethodPut, "/v1/revocations",
		"Hands the node a revocation list. It keeps the newest one, and refuses one that is older than its own, or revokes less.", documentSize)}
}

// PutCertificate hands a node a new certificate.
func PutCertificate() Call[message.Certificate, message.None] {
	return Call[message.Certificate, message.None]{change("certificate", http.MethodPut, "/v1/certificate",
		"Hands the node a new certificate for its key. It shows that from then on, and refuses one that is older than its own.", small)}
}

// Power reboots a node, or powers it off.
func Power() Call[message.Power, message.None] {
	return Call[message.Power, message.None]{change("power", http.MethodPost, "/v1/power",
		"Reboots the machine, or powers it off, in good order, once the answer is under way.", small)}
}

// Erase makes a node forget everything.
func Erase() Call[message.None, message.None] {
	return Call[message.None, message.None]{change("erase", http.MethodPost, "/v1/erase",
		"Destroys the wrapped copies of the volume's key, and powers off. The node's next boot finds a blank disk.", small)}
}

// Ping tries the network from a node.
func Ping() Call[message.Ping, message.Pinged] {
	r := change("ping", http.MethodPost, "/v1/ping",
		"Tries from the node whether a host has an address, and answers to ICMP or on a TCP port.", small)
	r.Timeout = 30 * time.Second
	return Call[message.Ping, message.Pinged]{r}
}

// Logs reads a node's log.
func Logs() Stream[message.Logs] {
	r := change("logs", http.MethodPost, "/v1/logs", "The log of this boot, of the one before, or of the kernel's last panics, line by line, oldest first.", small)
	r.Stream = true
	return Stream[message.Logs]{r}
}

// All returns the table.
func All() []Route {
	return []Route{
		GetOffer().Route, Enroll().Route,
		GetLock().Route, Unlock().Route,
		GetInfo().Route, GetStatus().Route, GetMesh().Route, GetRevocations().Route,
		PutMembership().Route, PutRevocations().Route, PutCertificate().Route,
		Power().Route, Erase().Route, Ping().Route, Logs().Route,
	}
}
