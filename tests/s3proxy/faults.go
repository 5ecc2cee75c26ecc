package s3proxy

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Fault answers a request, or doesn't.
type Fault func(*Exchange)

// All matches every request.
func All(*http.Request) bool { return true }

// Listings matches requests for a listing.
func Listings(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.Query().Get("list-type") == "2"
}

// Gets matches requests for a whole object.
func Gets(r *http.Request) bool {
	return r.Method == http.MethodGet && !Listings(r) && r.Header.Get("Range") == ""
}

// Stats matches requests for an object's first byte, or for its headers.
func Stats(r *http.Request) bool {
	return r.Method == http.MethodHead || r.Method == http.MethodGet && r.Header.Get("Range") != ""
}

// Puts matches uploads.
func Puts(r *http.Request) bool { return r.Method == http.MethodPut }

// Deletes matches deletions.
func Deletes(r *http.Request) bool { return r.Method == http.MethodDelete }

// Drop closes the connection without an answer. The server doesn't see the
// request.
func Drop(x *Exchange) { x.Drop() }

// Reset resets the connection. The server doesn't see the request.
func Reset(x *Exchange) { x.Reset() }

// DropAnswer has the server carry the request out and closes the connection
// instead of answering.
func DropAnswer(x *Exchange) {
	x.Forward()
	x.Drop()
}

// Stall answers nothing until the client gives up.
func Stall(x *Exchange) {
	// Without reading the body, net/http doesn't notice that the client left.
	_, _ = io.Copy(io.Discard, x.Request.Body)
	select {
	case <-x.Request.Context().Done():
	case <-x.proxy.closing:
	}
	x.Drop()
}

// StallBody sends the answer's headers and nothing of its body.
func StallBody(x *Exchange) {
	answer := x.Forward()
	for name, values := range answer.Header {
		x.writer.Header()[name] = values
	}
	x.writer.Header().Set("Content-Length", strconv.Itoa(len(answer.Body)+1))
	x.writer.WriteHeader(answer.Status)
	if flusher, ok := x.writer.(http.Flusher); ok {
		flusher.Flush()
	}
	Stall(x)
}

// Cut leaves out the last n bytes of the answer's body, which is announced whole.
func Cut(n int) Fault {
	return func(x *Exchange) {
		answer := x.Forward()
		answer.Cut = n
		x.Reply(answer)
	}
}

// Shorten leaves out the last n bytes of the answer's body, and announces the
// rest as if it were the whole.
func Shorten(n int) Fault {
	return func(x *Exchange) {
		answer := x.Forward()
		answer.Body = answer.Body[:max(len(answer.Body)-n, 0)]
		x.Reply(answer)
	}
}

// Corrupt turns a bit in the middle of the body of an answer of success.
func Corrupt(x *Exchange) {
	answer := x.Forward()
	if answer.Status/100 == 2 {
		flip(answer.Body)
	}
	x.Reply(answer)
}

// CorruptUpload turns a bit in the middle of what is uploaded.
func CorruptUpload(x *Exchange) {
	body, err := io.ReadAll(x.Request.Body)
	if err != nil {
		x.Drop()
	}
	flip(body)
	x.Request.Body = io.NopCloser(bytes.NewReader(body))
	x.Reply(x.Forward())
}

func flip(body []byte) {
	if len(body) > 0 {
		body[len(body)/2] ^= 4
	}
}

// Document returns an error document as S3 writes it.
func Document(code, message string) []byte {
	return fmt.Appendf(nil, `<?xml version="1.0" encoding="UTF-8"?>
<Error><Code>%s</Code><Message>%s</Message><RequestId>4442587FB7D0A2F9</RequestId></Error>`, code, message)
}

// Fail answers with an error that the server knows nothing of. headers are pairs
// of names and values.
func Fail(status int, code, message string, headers ...string) Fault {
	return func(x *Exchange) {
		answer := Answer{Status: status, Header: http.Header{"Content-Type": {"application/xml"}}, Body: Document(code, message)}
		for i := 0; i+1 < len(headers); i += 2 {
			answer.Header.Set(headers[i], headers[i+1])
		}
		_, _ = io.Copy(io.Discard, x.Request.Body)
		x.Reply(answer)
	}
}

// Say answers with a status and a body that are no S3 service's.
func Say(status int, contentType, body string) Fault {
	return func(x *Exchange) {
		_, _ = io.Copy(io.Discard, x.Request.Body)
		x.Reply(Answer{Status: status, Header: http.Header{"Content-Type": {contentType}}, Body: []byte(body)})
	}
}

// Relabel has the request carried out and sets a header of the answer, or removes
// it if the value is empty.
func Relabel(name, value string) Fault {
	return func(x *Exchange) {
		answer := x.Forward()
		answer.Header.Set(name, value)
		if value == "" {
			answer.Header.Del(name)
		}
		x.Reply(answer)
	}
}

// Rewrite changes the answer's body.
func Rewrite(change func(body string) string) Fault {
	return func(x *Exchange) {
		answer := x.Forward()
		answer.Body = []byte(change(string(answer.Body)))
		x.Reply(answer)
	}
}

var (
	nextToken = regexp.MustCompile(`<NextContinuationToken>[^<]*</NextContinuationToken>`)
	truncated = regexp.MustCompile(`<IsTruncated>[^<]*</IsTruncated>`)
)

// Token makes every page of a listing say that there is another, at that token.
func Token(token string) Fault {
	return Rewrite(func(body string) string {
		return truncated.ReplaceAllString(nextToken.ReplaceAllString(body, ""),
			"<IsTruncated>true</IsTruncated><NextContinuationToken>"+token+"</NextContinuationToken>")
	})
}

// Endless answers with a body that goes on until the client gives up. The body
// begins with start and goes on with again.
func Endless(start, again string) Fault {
	return func(x *Exchange) {
		x.writer.Header().Set("Etag", `"endless"`)
		x.writer.WriteHeader(http.StatusOK)
		block := []byte(start)
		for {
			if _, err := x.writer.Write(block); err != nil {
				x.Drop()
			}
			block = []byte(strings.Repeat(again, 1+(64<<10)/len(again)))
		}
	}
}

// If commits the fault on requests that match, and none on others.
func If(match Match, fault Fault) Fault {
	return func(x *Exchange) {
		if match(x.Request) {
			fault(x)
			return
		}
		x.Reply(x.Forward())
	}
}

// Mildly returns a fault for every request that commits one of those given now
// and then: on the first and every fifth request of a method and URL after it,
// but three times for each, so that whoever tries four times succeeds.
func Mildly(faults ...Fault) Fault {
	const every, most = 5, 3
	var mu sync.Mutex
	seen := map[string]int{}
	next := 0
	choose := func(x *Exchange) Fault {
		mu.Lock()
		defer mu.Unlock()
		// Whether a range is asked for makes another request of it, too.
		key := x.Request.Method + x.Request.RequestURI + x.Request.Header.Get("Range")
		n := seen[key]
		seen[key]++
		if n%every != 0 || n/every >= most {
			return nil
		}
		next++
		return faults[next%len(faults)]
	}
	return func(x *Exchange) {
		if fault := choose(x); fault != nil {
			fault(x)
			return
		}
		x.Reply(x.Forward())
	}
}
