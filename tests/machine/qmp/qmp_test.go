package qmp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
)

// serve plays QEMU: it answers each request by what answer returns for it.
func serve(t *testing.T, answer func(request string) string) net.Conn {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	go func() {
		defer theirs.Close()
		_, _ = fmt.Fprintln(theirs, `{"QMP": {"version": {}, "capabilities": []}}`)
		scanner := bufio.NewScanner(theirs)
		for scanner.Scan() {
			text := answer(scanner.Text())
			if text == "" {
				return
			}
			if _, err := fmt.Fprintln(theirs, text); err != nil {
				return
			}
		}
	}()
	return ours
}

// id is the request's number.
func id(request string) string {
	_, after, _ := strings.Cut(request, `"id":`)
	return strings.TrimSuffix(after, "}")
}

func TestExecute(t *testing.T) {
	client, err := New(t.Context(), serve(t, func(request string) string {
		switch {
		case strings.Contains(request, "qmp_capabilities"):
			return `{"event": "RESUME", "timestamp": {"seconds": 1700000000, "microseconds": 250000}}` + "\n" + `{"return": {}, "id": ` + id(request) + `}`
		case strings.Contains(request, `"execute":"query","arguments":{"a":1}`):
			return `{"return": {"status": "running"}, "id": ` + id(request) + `}`
		case strings.Contains(request, "bad"):
			return `{"error": {"class": "GenericError", "desc": "no such thing"}, "id": ` + id(request) + `}`
		}
		return ""
	}))
	if err != nil {
		t.Fatal(err)
	}
	var result struct{ Status string }
	if err := client.Execute(t.Context(), "query", map[string]int{"a": 1}, &result); err != nil || result.Status != "running" {
		t.Errorf("it returned %v, %v", result, err)
	}
	if err := client.Execute(t.Context(), "bad", nil, nil); err == nil || err.Error() != "tell QEMU bad: GenericError: no such thing" {
		t.Errorf("the error is %v", err)
	}
	if event, err := client.Wait(t.Context(), Named("RESUME")); err != nil || event.Name != "RESUME" || event.Time.UnixMilli() != 1_700_000_000_250 {
		t.Errorf("waited for %v, %v", event, err)
	}
	if err := client.Execute(t.Context(), "end", nil, nil); !Ended(err) {
		t.Errorf("the error is %v", err)
	}
	if _, err := client.Wait(t.Context(), Named("RESUME")); !Ended(err) {
		t.Errorf("an event that was returned came again, or: %v", err)
	}
}

func TestContext(t *testing.T) {
	silent := make(chan struct{})
	defer close(silent)
	connection := serve(t, func(string) string { <-silent; return "" })
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if _, err := New(ctx, connection); !errors.Is(err, why) {
		t.Errorf("the error is %v", err)
	}
}

// FuzzMessages has QEMU send anything: nothing may hang or panic.
func FuzzMessages(f *testing.F) {
	f.Add([]byte(`{"QMP": {}}` + "\n" + `{"return": {}, "id": 0}` + "\n"))
	f.Add([]byte(`{"event": "RESET"}` + "\n"))
	f.Add([]byte(`{"error": {"desc": "no"}, "id": 0}` + "\n"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			_, _ = theirs.Write(sent)
		}()
		go func() { _, _ = bufio.NewReader(theirs).ReadString('\n') }()
		client, err := New(t.Context(), ours)
		if err != nil {
			return
		}
		if _, err := client.Wait(t.Context(), Named("RESET")); err != nil && !Ended(err) && !strings.Contains(err.Error(), "no JSON") {
			t.Error(err)
		}
	})
}
