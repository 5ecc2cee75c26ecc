package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http/httptrace"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"powercloud.unidatum.com/go/admin/pcctl"
)

// admin is somebody who runs pcctl, with a cluster of their own.
type admin struct {
	configuration string
	environment   map[string]string
}

// recoveryKey is what init prints of one.
var recoveryKey = regexp.MustCompile(`(?m)^ +((?:[A-Z2-7]{4}-)+[A-Z2-7]{4})$`)

// newAdmin makes a cluster below a folder.
func newAdmin(ctx context.Context, folder string) (*admin, error) {
	a := &admin{configuration: filepath.Join(folder, "config"), environment: map[string]string{
		"POWERCLOUD_REPO":       repository(folder),
		"POWERCLOUD_PASSPHRASE": "a passphrase that nobody needs again",
	}}
	said, _, err := a.call(ctx, "init")
	if err != nil {
		return nil, err
	}
	found := recoveryKey.FindStringSubmatch(said)
	if found == nil {
		return nil, errors.New("pcctl init printed no recovery key")
	}
	delete(a.environment, "POWERCLOUD_PASSPHRASE")
	a.environment["POWERCLOUD_RECOVERY_KEY"] = found[1]
	return a, nil
}

// run runs pcctl and returns the requests that it made to nodes, in their order.
func (a *admin) run(ctx context.Context, arguments ...string) ([]request, error) {
	_, requests, err := a.call(ctx, arguments...)
	return requests, err
}

func (a *admin) call(ctx context.Context, arguments ...string) (string, []request, error) {
	var output, said bytes.Buffer
	var log requestLog
	status := pcctl.Run(log.watch(ctx), pcctl.Env{
		Args:      append([]string{"pcctl"}, arguments...),
		Stdout:    &output,
		Stderr:    &said,
		Getenv:    func(name string) string { return a.environment[name] },
		ConfigDir: a.configuration,
	})
	if status != 0 {
		return "", nil, fmt.Errorf("pcctl %s: exit status %d: %s", strings.Join(arguments, " "), status, strings.TrimSpace(said.String()))
	}
	return output.String(), log.done(), nil
}

// request is a request over HTTP.
type request struct {
	// began is when there was a connection to send it on, and answered when the first byte
	// of the answer came.
	began, answered time.Time
}

// requestLog has the requests that were made with a context, each after the one before.
type requestLog struct {
	mu       sync.Mutex
	requests []request
}

// watch returns a context whose requests are noted.
func (l *requestLog) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.requests = append(l.requests, request{began: time.Now()})
		},
		GotFirstResponseByte: func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			if last := len(l.requests) - 1; last >= 0 && l.requests[last].answered.IsZero() {
				l.requests[last].answered = time.Now()
			}
		},
	})
}

// done returns the requests that were answered.
func (l *requestLog) done() []request {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []request
	for _, r := range l.requests {
		if !r.answered.IsZero() {
			list = append(list, r)
		}
	}
	return list
}
