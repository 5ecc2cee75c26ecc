package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
	"powercloud.unidatum.com/tests/s3proxy"
	"powercloud.unidatum.com/tests/s3server"
)

// limit is more than any blob here has, in bytes.
const limit = 8 << 20

// rig is a location at a server behind a faulty proxy, with a blob in it.
type rig struct {
	*Location
	server *s3server.Server
	proxy  *s3proxy.Proxy
	dir    string // the bucket's
	name   blob.Name
	data   []byte
	waits  *waits
}

func newRig(t *testing.T, server *s3server.Server) *rig {
	t.Helper()
	name := fmt.Sprintf("bucket-%d", bucketNumber(t, server))
	r := &rig{
		server: server, proxy: s3proxy.Start(t, server.Endpoint), dir: bucket(t, server, name),
		name: blobtest.Name(blob.KindChunk, 1), data: blobtest.Bytes(1, 10_000), waits: &waits{},
	}
	r.Location = open(t, server.Getenv, strings.Replace(server.Location(name+"/pc"), server.Endpoint, r.proxy.URL, 1))
	r.sleep = r.waits.sleep
	if err := r.Put(t.Context(), r.name, r.data); err != nil {
		t.Fatal(err)
	}
	r.proxy.Forget()
	r.client.CloseIdleConnections()
	return r
}

func bucketNumber(t *testing.T, server *s3server.Server) int {
	t.Helper()
	buckets, err := os.ReadDir(server.Dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(buckets)
}

// operation is one of a location's, made with a blob that is there.
type operation struct {
	name  string
	match s3proxy.Match
	run   func(context.Context, *rig) error
}

func operations() []operation {
	return []operation{
		{"Put", s3proxy.Puts, func(ctx context.Context, r *rig) error {
			r.data = blobtest.Bytes(2, 20_000)
			return r.Put(ctx, r.name, r.data)
		}},
		{"Create", s3proxy.Puts, func(ctx context.Context, r *rig) error {
			r.name = blobtest.Name(blob.KindManifest, 1)
			return r.Create(ctx, r.name, r.data)
		}},
		{"Get", s3proxy.Gets, func(ctx context.Context, r *rig) error {
			got, err := r.Get(ctx, r.name, nil, limit)
			if err == nil && !bytes.Equal(got, r.data) {
				err = fmt.Errorf("Get returns %d bytes that aren't what was put", len(got))
			}
			return err
		}},
		{"Stat", s3proxy.Stats, func(ctx context.Context, r *rig) error {
			info, err := r.Stat(ctx, r.name)
			if err == nil && info.Size != int64(len(r.data)) {
				err = fmt.Errorf("Stat tells a size of %d", info.Size)
			}
			return err
		}},
		{"Delete", s3proxy.Deletes, func(ctx context.Context, r *rig) error { return r.Delete(ctx, r.name) }},
		{"List", s3proxy.Listings, func(ctx context.Context, r *rig) error {
			found := 0
			err := r.List(ctx, blob.KindChunk, func(info blob.Info) error {
				found++
				if info.Name != r.name || info.Size != int64(len(r.data)) {
					return fmt.Errorf("List tells %+v", info)
				}
				return nil
			})
			if err == nil && found != 1 {
				err = fmt.Errorf("List tells of %d blobs", found)
			}
			return err
		}},
		{"Probe", s3proxy.Listings, func(ctx context.Context, r *rig) error { return r.Probe(ctx) }},
	}
}

// holds fails the test unless the blob is what it should be, as the server has it.
func (r *rig) holds(t *testing.T, want []byte) {
	t.Helper()
	got, err := os.ReadFile(filepath.Join(r.dir, "pc", key(r.name)))
	switch {
	case want == nil && errors.Is(err, os.ErrNotExist):
	case err != nil || !bytes.Equal(got, want):
		t.Errorf("the server holds %d bytes, %v; want %d", len(got), err, len(want))
	}
}

// patient is a fault that a location meets by trying again.
type patient struct {
	name  string
	fault s3proxy.Fault
	// applies tells for which operations; all when nil.
	applies func(operation string) bool
	// says is in the error once it has given up.
	says string
}

func only(names ...string) func(string) bool {
	return func(name string) bool { return strings.Contains(" "+strings.Join(names, " ")+" ", " "+name+" ") }
}

func patients() []patient {
	return []patient{
		{"Drop", s3proxy.Drop, nil, "can't be reached: EOF"},
		{"DropAnswer", s3proxy.DropAnswer, nil, "can't be reached: EOF"},
		{"Reset", s3proxy.Reset, nil, "can't be reached: "},
		{"Stall", s3proxy.Stall, nil, "the service stopped answering"},
		{"StallBody", s3proxy.StallBody, only("Get", "List"), "the service stopped answering"},
		{"Cut", s3proxy.Cut(5), only("Get", "List", "Probe"), "the service's answer can't be used: unexpected EOF"},
		{"Shorten", s3proxy.Shorten(5), only("Get", "List", "Probe"), "the service's answer can't be used: "},
		{"Corrupt", s3proxy.Corrupt, only("Get"), "checksum did not match"},
		{"CorruptUpload", s3proxy.CorruptUpload, only("Put", "Create"), "400 XAmzContentSHA256Mismatch: "},
		{"503", s3proxy.Fail(503, "SlowDown", "Please reduce your request rate."), nil, "the service reports an error: 503 SlowDown: Please reduce your request rate."},
		{"503 without a word", s3proxy.Say(503, "text/html", "<html>busy</html>"), nil, "the service reports an error: 503 Service Unavailable"},
		{"429", s3proxy.Fail(429, "TooManyRequests", "Slow\ndown"), nil, "429 TooManyRequests: Slow down"},
		{"500", s3proxy.Fail(500, "InternalError", "We encountered an internal error."), nil, "500 InternalError: We"},
		{"502", s3proxy.Say(502, "text/plain", "bad gateway"), nil, "502 Bad Gateway"},
		{"501", s3proxy.Say(501, "text/plain", ""), nil, "501 Not Implemented"},
		{"400 RequestTimeout", s3proxy.Fail(400, "RequestTimeout", "Your socket connection to the server was not read from."), nil, "400 RequestTimeout"},
		{"409", s3proxy.Fail(409, "OperationAborted", "A conflicting operation is in progress."), nil, "409 OperationAborted"},
		{"200 with an error", s3proxy.Fail(200, "InternalError", "We encountered an internal error."), nil,
			"the service reports an error as a success: InternalError: We encountered an internal error."},
		{"200 of a login page", s3proxy.Say(200, "text/html", "<html><body>Welcome to the hotel</body></html>"), nil, errNoAnswer.Error()},
	}
}

func TestFaultsAreMetByTryingAgain(t *testing.T) {
	server := s3server.Start(t)
	for _, fault := range patients() {
		for _, op := range operations() {
			if fault.applies != nil && !fault.applies(op.name) {
				continue
			}
			t.Run(fault.name+"/"+op.name, func(t *testing.T) { testPatience(t, newRig(t, server), fault, op) })
		}
	}
}

func testPatience(t *testing.T, r *rig, fault patient, op operation) {
	r.patience.idle = time.Second
	if strings.HasPrefix(fault.name, "Stall") {
		// Enough for a request to reach the proxy on a busy machine.
		r.patience.idle = 150 * time.Millisecond
	}
	before := r.data
	r.proxy.Inject(op.match, tries, fault.fault)
	err := op.run(t.Context(), r)
	if err == nil || !strings.Contains(err.Error(), fault.says) || strings.ContainsAny(err.Error(), "\n\r") {
		t.Errorf("after four faults: %v; want %q in a line", err, fault.says)
	}
	if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrTooLarge) {
		t.Errorf("%v is taken for an answer about the blob", err)
	}
	if n := len(r.proxy.Requests(op.match)); n != tries {
		t.Errorf("%d requests were made, want %d", n, tries)
	}
	if carriedOut := fault.name == "DropAnswer"; !carriedOut && op.name == "Put" {
		r.holds(t, before)
	}
	// The last try must be answered in this time on a busy machine too.
	r.patience.idle = time.Second
	r.proxy.Forget()
	r.proxy.Heal()
	r.proxy.Inject(op.match, tries-1, fault.fault)
	if op.name == "Create" && fault.name == "DropAnswer" {
		// It is there, from the tries before: of ours, the first finds it.
		r.name = blobtest.Name(blob.KindManifest, 1)
		if err := r.Delete(t.Context(), r.name); err != nil {
			t.Fatal(err)
		}
	}
	if err := op.run(t.Context(), r); err != nil {
		t.Errorf("after three faults: %v", err)
	}
	switch op.name {
	case "Put", "Create":
		r.holds(t, r.data)
	case "Delete":
		r.holds(t, nil)
	}
	if n := len(r.waits.times); n != 2*(tries-1) {
		t.Errorf("it waited %d times", n)
	}
}

func TestBackoff(t *testing.T) {
	r := newRig(t, s3server.Start(t))
	r.proxy.Inject(s3proxy.Puts, -1, s3proxy.Fail(503, "SlowDown", ""))
	for range 20 {
		r.waits.times = nil
		if err := r.Put(t.Context(), r.name, r.data); err == nil {
			t.Fatal("Put succeeds")
		}
		for i, most := range []time.Duration{200 * time.Millisecond, 800 * time.Millisecond, 3200 * time.Millisecond} {
			if wait := r.waits.times[i]; wait < most/2 || wait > most {
				t.Errorf("the wait before try %d is %v, want half of %v to all of it", i+2, wait, most)
			}
		}
	}
	if n := r.limiter.Limit(); n != 1 {
		t.Errorf("after many calls for fewer requests, %d at once are worth having", n)
	}
	for after, want := range map[string]time.Duration{
		"7": 7 * time.Second, "99999999": maxRetryAfter, "-1": 0, "soon": 0,
		time.Now().Add(20 * time.Second).UTC().Format(http.TimeFormat): 18 * time.Second,
		time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat):       0,
	} {
		r.proxy.Heal()
		r.proxy.Inject(s3proxy.Puts, 1, s3proxy.Fail(503, "SlowDown", "", "Retry-After", after))
		r.waits.times = nil
		if err := r.Put(t.Context(), r.name, r.data); err != nil {
			t.Errorf("Put after Retry-After: %s: %v", after, err)
		}
		if wait := r.waits.times[0]; wait < want || wait > want+3*time.Second {
			t.Errorf("with Retry-After: %s it waits %v, want %v", after, wait, want)
		}
	}
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	r := newRig(t, s3server.Start(t))
	r.proxy.Inject(s3proxy.All, -1, s3proxy.Fail(503, "SlowDown", "", "Retry-After", "20"))
	ctx, cancel := context.WithCancel(t.Context())
	r.sleep = func(ctx context.Context, wait time.Duration) error {
		cancel()
		return sleep(ctx, wait)
	}
	if err := r.Put(ctx, r.name, r.data); !errors.Is(err, context.Canceled) {
		t.Errorf("Put returns %v", err)
	}
	// A request that is under way ends too.
	r.proxy.Heal()
	for _, op := range operations() {
		ctx, cancel := context.WithCancel(t.Context())
		r.proxy.Inject(s3proxy.All, 1, func(x *s3proxy.Exchange) {
			cancel()
			s3proxy.Stall(x)
		})
		if err := op.run(ctx, r); !errors.Is(err, context.Canceled) {
			t.Errorf("%s returns %v", op.name, err)
		}
	}
}

// TestCreateWhoseAnswerGotLost has the first try create the blob: the second finds
// it there, which is no reason to fail.
func TestCreateWhoseAnswerGotLost(t *testing.T) {
	r := newRig(t, s3server.Start(t))
	name := blob.Header()
	r.proxy.Inject(s3proxy.Puts, 1, s3proxy.DropAnswer)
	if err := r.Create(t.Context(), name, r.data); err != nil {
		t.Errorf("Create: %v", err)
	}
	if err := r.Create(t.Context(), name, r.data); !errors.Is(err, blob.ErrExists) {
		t.Errorf("Create again: %v", err)
	}
	// Somebody else created it between the look and the first try.
	if err := r.Delete(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	r.proxy.Inject(s3proxy.Puts, 1, func(x *s3proxy.Exchange) {
		if err := open(t, r.server.Getenv, strings.Replace(r.String(), r.proxy.URL, r.server.Endpoint, 1)).Put(t.Context(), name, []byte("another")); err != nil {
			t.Error(err)
		}
		x.Drop()
	})
	if err := r.Create(t.Context(), name, r.data); !errors.Is(err, blob.ErrExists) {
		t.Errorf("Create beside another: %v", err)
	}
	if got, err := r.Get(t.Context(), name, nil, limit); err != nil || string(got) != "another" {
		t.Errorf("Get: %.20q, %v", got, err)
	}
}

// TestCreateAtServiceWithoutConditions has the service refuse the condition: it isn't
// asked for another one.
func TestCreateAtServiceWithoutConditions(t *testing.T) {
	server := s3server.Start(t)
	for _, fault := range []s3proxy.Fault{
		s3proxy.Fail(501, "NotImplemented", "A header you provided implies functionality that is not implemented."),
		s3proxy.Fail(400, "InvalidArgument", "Unsupported header 'if-none-match' received for this API call."),
	} {
		r := newRig(t, server)
		asked := 0
		r.proxy.Inject(func(q *http.Request) bool { return q.Header.Get("If-None-Match") != "" }, -1, func(x *s3proxy.Exchange) {
			asked++
			fault(x)
		})
		for _, name := range []blob.Name{blob.Header(), blobtest.Name(blob.KindManifest, 1)} {
			if err := r.Create(t.Context(), name, r.data); err != nil {
				t.Errorf("Create: %v", err)
			}
			if err := r.Create(t.Context(), name, r.data); !errors.Is(err, blob.ErrExists) {
				t.Errorf("Create again: %v", err)
			}
		}
		if asked != 1 {
			t.Errorf("the service was asked for %d conditions", asked)
		}
	}
}

// TestCreateWhileAnotherDoes has the service answer that another conditional upload goes
// on.
func TestCreateWhileAnotherDoes(t *testing.T) {
	r := newRig(t, s3server.Start(t))
	r.proxy.Inject(s3proxy.Puts, 1, s3proxy.Fail(409, "ConditionalRequestConflict", "The conditional request cannot succeed due to a conflicting operation against this resource."))
	if err := r.Create(t.Context(), blob.Header(), r.data); !errors.Is(err, blob.ErrExists) {
		t.Errorf("Create: %v", err)
	}
}

// exclaiming appends to a blob.
func exclaiming(data []byte, err error) ([]byte, error) {
	if err != nil && !errors.Is(err, blob.ErrNotFound) {
		return nil, err
	}
	return append(bytes.Clone(data), '!'), nil
}

// conditional matches uploads on the condition that what is there is still the same.
func conditional(q *http.Request) bool { return q.Header.Get("If-Match") != "" }

// TestAmendedByOthers: versitygw 1.8.0 lets two through that have read the same, and states
// the ETag of one object with the content of another; the proxy has it answer one request
// after the other.
func TestAmendedByOthers(t *testing.T) {
	r := newRig(t, s3server.Start(t))
	r.proxy.Serialize()
	other := open(t, r.server.Getenv, r.String())
	blobtest.AmendAtOnce(t, r.Location, other)
	blobtest.AmendMeanwhile(t, r.Location, other)
}

// TestAmendWhoseAnswerGotLost has the first try replace the blob, and another time
// somebody else.
func TestAmendWhoseAnswerGotLost(t *testing.T) {
	r := newRig(t, s3server.Start(t))
	name := blobtest.Name(blob.KindManifest, 1)
	if err := r.Put(t.Context(), name, []byte("former")); err != nil {
		t.Fatal(err)
	}
	r.proxy.Inject(conditional, 1, s3proxy.DropAnswer)
	if err := r.Amend(t.Context(), name, limit, exclaiming); err != nil {
		t.Errorf("Amend: %v", err)
	}
	if got, err := r.Get(t.Context(), name, nil, limit); err != nil || string(got) != "former!" {
		t.Errorf("Get: %.20q, %v", got, err)
	}
	r.proxy.Inject(conditional, 1, func(x *s3proxy.Exchange) {
		if err := open(t, r.server.Getenv, strings.Replace(r.String(), r.proxy.URL, r.server.Endpoint, 1)).Put(t.Context(), name, []byte("another")); err != nil {
			t.Error(err)
		}
		x.Drop()
	})
	if err := r.Amend(t.Context(), name, limit, exclaiming); err != nil {
		t.Errorf("Amend: %v", err)
	}
	if got, err := r.Get(t.Context(), name, nil, limit); err != nil || string(got) != "another!" {
		t.Errorf("Get: %.20q, %v", got, err)
	}
}

// TestAmendAtServicesWithoutConditions has services refuse the condition, or each ETag
// that they have stated, or state ETags that aren't the MD5 of the content.
func TestAmendAtServicesWithoutConditions(t *testing.T) {
	server := s3server.Start(t)
	for _, test := range []struct {
		name  string
		match s3proxy.Match
		fault s3proxy.Fault
	}{
		{"NotImplemented", conditional, s3proxy.Fail(501, "NotImplemented", "A header you provided implies functionality that is not implemented.")},
		{"InvalidArgument", conditional, s3proxy.Fail(400, "InvalidArgument", "Unsupported header 'if-match' received for this API call.")},
		{"AlwaysChanged", conditional, s3proxy.Fail(412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold")},
		{"OtherETag", s3proxy.Gets, s3proxy.Relabel("ETag", `"0123"`)},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, server)
			name := blobtest.Name(blob.KindManifest, 1)
			want := "former"
			if err := r.Put(t.Context(), name, []byte(want)); err != nil {
				t.Fatal(err)
			}
			r.proxy.Inject(test.match, -1, test.fault)
			for range 2 {
				want += "!"
				if err := r.Amend(t.Context(), name, limit, exclaiming); err != nil {
					t.Errorf("Amend: %v", err)
				}
				if got, err := r.Get(t.Context(), name, nil, limit); err != nil || string(got) != want {
					t.Errorf("Get: %.20q, %v; want %q", got, err, want)
				}
			}
		})
	}
}

// TestAmendOfWhatIsReplacedWhileItIsRead: a service may state the ETag of an object that
// is just taking the place of what it sends.
func TestAmendOfWhatIsReplacedWhileItIsRead(t *testing.T) {
	r := newRig(t, s3server.Start(t))
	name := blobtest.Name(blob.KindManifest, 1)
	if err := r.Amend(t.Context(), name, limit, exclaiming); err != nil {
		t.Fatal(err)
	}
	if err := r.Put(t.Context(), name, []byte("new")); err != nil {
		t.Fatal(err)
	}
	stale := s3proxy.Rewrite(func(string) string { return "old" })
	r.proxy.Inject(s3proxy.Gets, 2, stale)
	if err := r.Amend(t.Context(), name, limit, exclaiming); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Get(t.Context(), name, nil, limit); err != nil || string(got) != "new!" {
		t.Errorf("Get: %.20q, %v", got, err)
	}
}

// TestReaderThatCanTell: a blob that its reader authenticates is read without a
// checksum. One that was altered is read again with it, which tells what was altered
// on the way from what the bucket has.
func TestReaderThatCanTell(t *testing.T) {
	r := newRig(t, s3server.Start(t))
	notAuthentic := errors.New("it is not authentic")
	get := func(want []byte) ([]byte, error) {
		return r.GetAccepted(t.Context(), r.name, make([]byte, 0, limit), limit, func(data []byte) error {
			if !bytes.Equal(data, want) {
				clear(data)
				return notAuthentic
			}
			return nil
		})
	}
	modes := func() string {
		var modes []string
		for _, request := range r.proxy.Requests(s3proxy.Gets) {
			modes = append(modes, "["+request.Header.Get("X-Amz-Checksum-Mode")+"]")
		}
		r.proxy.Forget()
		return strings.Join(modes, " ")
	}
	if got, err := get(r.data); err != nil || !bytes.Equal(got, r.data) {
		t.Errorf("GetAccepted returns %d bytes, %v", len(got), err)
	}
	if got := modes(); got != "[]" {
		t.Errorf("for an authentic blob, checksums were asked for like this: %s", got)
	}

	r.proxy.Inject(s3proxy.Gets, 2, s3proxy.Corrupt)
	if got, err := get(r.data); err != nil || !bytes.Equal(got, r.data) {
		t.Errorf("altered on the way twice, GetAccepted returns %d bytes, %v", len(got), err)
	}
	if got := modes(); got != "[] [ENABLED] [ENABLED]" {
		t.Errorf("for a blob altered on the way, checksums were asked for like this: %s", got)
	}

	r.proxy.Inject(s3proxy.Gets, -1, s3proxy.Corrupt)
	if _, err := get(r.data); err == nil || errors.Is(err, notAuthentic) || !strings.Contains(err.Error(), "checksum did not match") {
		t.Errorf("altered on the way again and again: %v", err)
	}
	r.proxy.Heal()

	if _, err := get([]byte("something else")); !errors.Is(err, notAuthentic) {
		t.Errorf("a blob that isn't authentic: %v", err)
	}
	if err := r.Delete(t.Context(), r.name); err != nil {
		t.Fatal(err)
	}
	if _, err := get(r.data); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("a blob that isn't there: %v", err)
	}
}
