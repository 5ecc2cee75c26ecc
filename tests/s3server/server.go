// Package s3server runs a real S3 server for tests: versitygw, over a directory.
package s3server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/tests/output"
)

// Region is the region that the server takes signatures for.
const Region = "us-east-1"

// maxOutput is how much of what the server prints is kept, in bytes, for when it
// fails.
const maxOutput = 64 << 10

// Server is a running S3 server with one access key.
type Server struct {
	// Endpoint is its address, http://127.0.0.1:PORT.
	Endpoint string
	// Dir has a directory for each bucket, which has a file for each object.
	Dir string
	// KeyID and Secret are the access key, which may do anything.
	KeyID, Secret string

	cmd    *exec.Cmd
	output *output.Text
	exited chan struct{}
	err    error // of the process, once it has exited
}

// Start starts a server, without buckets, that stops when the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	s, err := Run(t.TempDir())
	if err != nil {
		t.Fatalf("starting an S3 server: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Run starts a server that keeps its buckets below a directory, and waits until
// it answers. It must be stopped.
func Run(dir string) (*Server, error) {
	program, err := program()
	if err != nil {
		return nil, err
	}
	s := &Server{Dir: filepath.Join(dir, "buckets"), KeyID: "test-key", Secret: rand.Text()}
	// What the directory can't say of an object is kept beside it, so that the
	// file system needn't have extended attributes.
	metadata := filepath.Join(dir, "metadata")
	for _, each := range []string{s.Dir, metadata} {
		if err := os.Mkdir(each, 0o700); err != nil {
			return nil, err
		}
	}
	for range starts {
		if err = s.start(program, metadata); !errors.Is(err, errPortTaken) {
			return s, err
		}
	}
	return nil, err
}

const (
	// starts is how often a port is tried. The server can't tell which one the
	// system gave it, so a free one is found first, and may be taken meanwhile.
	starts = 10
	// readiness is how long a start may take.
	readiness = time.Minute
	// interval is how often a starting server is asked whether it is ready.
	interval = 5 * time.Millisecond
)

var errPortTaken = errors.New("the port was taken meanwhile")

func (s *Server) start(program, metadata string) error {
	address, err := freeAddress()
	if err != nil {
		return err
	}
	// A name of its own for the health check: what answers at the port is this
	// server then, and not another that was quicker.
	health := "/health-" + rand.Text()
	s.Endpoint = "http://" + address
	s.output, s.exited = &output.Text{Most: maxOutput}, make(chan struct{})
	s.cmd = exec.Command(program, "--port", address, "--region", Region, "--health", health, "--quiet", "--keep-alive",
		"posix", "--sidecar", metadata, s.Dir)
	s.cmd.Env = []string{"HOME=" + metadata, "ROOT_ACCESS_KEY_ID=" + s.KeyID, "ROOT_SECRET_ACCESS_KEY=" + s.Secret}
	s.cmd.Stdout, s.cmd.Stderr = s.output, s.output
	if err := s.cmd.Start(); err != nil {
		return err
	}
	go func() {
		s.err = s.cmd.Wait()
		close(s.exited)
	}()
	ctx, cancel := context.WithTimeout(context.Background(), readiness)
	defer cancel()
	if err := s.wait(ctx, s.Endpoint+health); err != nil {
		_ = s.Stop()
		return err
	}
	return nil
}

// wait returns once the server answers.
func (s *Server) wait(ctx context.Context, health string) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-s.exited:
			if strings.Contains(s.output.String(), "address already in use") {
				return errPortTaken
			}
			return fmt.Errorf("versitygw ended: %w\n%s", s.err, s.output)
		case <-ctx.Done():
			return fmt.Errorf("versitygw isn't ready after %v\n%s", readiness, s.output)
		case <-tick.C:
		}
		if answers(ctx, health) {
			return nil
		}
	}
}

func answers(ctx context.Context, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return false
	}
	transport := &http.Transport{DisableKeepAlives: true}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return false
	}
	return answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
}

// freeAddress returns a port on the loopback interface that nobody uses.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// Stop stops the server. It fails if the server had ended by itself.
func (s *Server) Stop() error {
	select {
	case <-s.exited:
		return fmt.Errorf("versitygw ended during the test: %w\n%s", s.err, s.output)
	default:
	}
	if err := s.cmd.Process.Kill(); err != nil {
		return err
	}
	<-s.exited
	return nil
}

// Bucket makes an empty bucket and returns its directory.
func (s *Server) Bucket(name string) (string, error) {
	dir := filepath.Join(s.Dir, name)
	return dir, os.Mkdir(dir, 0o700)
}

// Location returns a bucket's location, as in --repo, for the credentials that
// Environment sets.
func (s *Server) Location(bucketAndPrefix string) string {
	return "s3://" + bucketAndPrefix + "?endpoint=" + s.Endpoint + "&creds=test"
}

// Environment returns the variables for creds=test.
func (s *Server) Environment() []string {
	return []string{"TEST_ACCESS_KEY_ID=" + s.KeyID, "TEST_SECRET_ACCESS_KEY=" + s.Secret}
}

// Getenv looks a variable of Environment up.
func (s *Server) Getenv(name string) string {
	for _, variable := range s.Environment() {
		if value, ok := strings.CutPrefix(variable, name+"="); ok {
			return value
		}
	}
	return ""
}
