package client

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/api/route"
	"powercloud.unidatum.com/go/cluster/address"
)

// piece is some of an answer, and how long the node lets the caller wait for it.
type piece struct {
	after time.Duration
	text  string
}

// recite answers one request with pieces, and does no more until the caller has gone.
func recite(conn net.Conn, config *tls.Config, pieces []piece) {
	secure := tls.Server(conn, config)
	defer secure.Close()
	reader := bufio.NewReader(secure)
	if _, err := http.ReadRequest(reader); err != nil {
		return
	}
	gone := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, reader)
		close(gone)
	}()
	for _, p := range pieces {
		select {
		case <-time.After(p.after):
			_, _ = io.WriteString(secure, p.text)
		case <-gone:
			return
		}
	}
	<-gone
}

// TestSilence reads streams of nodes that pause.
func TestSilence(t *testing.T) {
	const (
		silence = 30 * time.Second
		almost  = silence - time.Second
		begin   = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\na\n\r\n"
		more    = "2\r\nb\n\r\n"
		end     = "0\r\n\r\n"
		broken  = "the node has sent nothing for 30s"
	)
	to, err := address.Parse("192.0.2.1", address.APIPort)
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{*selfSigned(t).Certificate}, MinVersion: tls.VersionTLS13}
	for name, test := range map[string]struct {
		silence time.Duration
		pieces  []piece
		// pause is how long the caller does something else after the first two bytes.
		pause time.Duration
		text  string
		err   string
		takes time.Duration
	}{
		"in time":           {silence, []piece{{almost, more}, {almost, more}, {almost, end}}, 0, "a\nb\nb\n", "", 3 * almost},
		"silent":            {silence, nil, 0, "a\n", broken, silence},
		"silent later":      {silence, []piece{{almost, more}}, 0, "a\nb\n", broken, almost + silence},
		"half a piece":      {silence, []piece{{0, "5\r\nb"}}, 0, "a\nb", broken, silence},
		"half a size":       {silence, []piece{{almost, "5"}}, 0, "a\n", broken, silence},
		"no end":            {silence, []piece{{almost, more}, {almost, "0\r\n"}}, 0, "a\nb\n", broken, almost + silence},
		"a slow caller":     {silence, []piece{{0, more}, {0, end}}, time.Hour, "a\nb\n", "", time.Hour},
		"slow, and silent":  {silence, []piece{{0, more}}, time.Hour, "a\nb\n", broken, time.Hour + silence},
		"as long as it may": {0, []piece{{24 * time.Hour, more}, {24 * time.Hour, end}}, 0, "a\nb\n", "", 48 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &Client{address: to, patience: time.Minute, http: &http.Client{Transport: transport(func(ctx context.Context) (*conn, error) {
					near, far := net.Pipe()
					go recite(far, config, append([]piece{{0, begin}}, test.pieces...))
					return handshake(ctx, near, to, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13})
				})}}
				defer c.Close()
				stream, err := Read(t.Context(), c, route.Logs(), new(message.Logs), test.silence)
				if err != nil {
					t.Fatal(err)
				}
				defer stream.Close()
				began := time.Now()
				first := make([]byte, 2)
				if _, err := io.ReadFull(stream, first); err != nil {
					t.Fatal(err)
				}
				time.Sleep(test.pause)
				rest, err := io.ReadAll(stream)
				said := ""
				if err != nil {
					said = err.Error()
				}
				if text := string(first) + string(rest); text != test.text || said != test.err {
					t.Errorf("%q, %q; want %q, %q", text, said, test.text, test.err)
				}
				if took := time.Since(began); took != test.takes {
					t.Errorf("it took %s, want %s", took, test.takes)
				}
			})
		})
	}
}
