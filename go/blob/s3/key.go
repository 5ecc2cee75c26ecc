package s3

import (
	"encoding/hex"
	"strings"

	"powercloud.unidatum.com/go/blob"
)

// Keys are named like the files of a directory location: PREFIX/header and
// PREFIX/KIND/ab/HEX, where HEX begins with ab. A bucket that was copied into a
// directory is a location, and the other way round.

// key returns the key of a blob below the location's prefix.
func key(name blob.Name) string {
	if name.Kind == blob.KindHeader {
		return name.Kind.String()
	}
	id := hex.EncodeToString(name.ID[:])
	return folder(name.Kind) + id[:2] + "/" + id
}

// folder returns what the keys of a kind's blobs begin with.
func folder(kind blob.Kind) string { return kind.String() + "/" }

// parseKey is the inverse of key for a kind other than the header's. Anything
// else is no blob of ours.
func parseKey(kind blob.Kind, text string) (blob.Name, bool) {
	rest, ok := strings.CutPrefix(text, folder(kind))
	if !ok || len(rest) != 2+1+2*blob.IDSize || rest[2] != '/' || rest[:2] != rest[3:5] {
		return blob.Name{}, false
	}
	id, ok := blob.ParseID(rest[3:])
	return blob.Name{Kind: kind, ID: id}, ok
}
