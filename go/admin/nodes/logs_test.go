package nodes

import (
	"context"
	"io"
	"testing"
	"time"

	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/cluster/registry/registrytest"
)

// TestLogOfASilentNode reads the log of a node that says nothing any more. Who follows it
// waits, and nobody else.
func TestLogOfASilentNode(t *testing.T) {
	ca := newCA(t)
	speak := make(chan struct{})
	home := startMember(t, ca, 1, func(ctx context.Context, asked *message.Logs, w io.Writer) error {
		if _, err := io.WriteString(w, `{"text":"a"}`+"\n"); err != nil {
			return err
		}
		next, rest := speak, `{"text":"b"}`+"\n"
		if !asked.Follow {
			next, rest = nil, ""
		}
		if asked.Boot == message.BootPrevious {
			if _, err := io.WriteString(w, `{"text":`); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-next:
		}
		_, err := io.WriteString(w, rest)
		return err
	})
	c, _ := newCaller(t, ca, &registrytest.Objects{})
	c.silence = time.Second / 4
	node := c.client(home.Address.Value, home.ID)
	defer node.Close()
	// Far longer than it takes, for a reader that waits for good.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	began, followed := make(chan struct{}, 2), make(chan error, 1)
	text := ""
	go func() {
		followed <- c.showLog(ctx, node, "home-1", &message.Logs{Boot: message.BootCurrent, Follow: true}, func(r *message.LogRecord) error {
			text += r.Text
			began <- struct{}{}
			return nil
		})
	}()
	select {
	case <-began:
	case err := <-followed:
		t.Fatalf("who follows: %v", err)
	}
	const want = "node home-1: its log breaks off: the node has sent nothing for 250ms"
	for _, boot := range []string{message.BootCurrent, message.BootPrevious} {
		read := ""
		err := c.showLog(ctx, node, "home-1", &message.Logs{Boot: boot}, func(r *message.LogRecord) error {
			read += r.Text
			return nil
		})
		if err == nil || err.Error() != want || read != "a" {
			t.Errorf("%s: %q, %v", boot, read, err)
		}
	}
	close(speak)
	if err := <-followed; err != nil || text != "ab" {
		t.Errorf("who follows: %q, %v", text, err)
	}
}
