package metadata

import (
	"bytes"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"testing"

	"powercloud.unidatum.com/tests/metadata"
)

func TestAWSTokens(t *testing.T) {
	standIn := &metadata.AWS{UserData: []byte("data")}
	s := metadata.Start(t, standIn)
	s.Inject(metadata.Tokens, 1, metadata.Say(http.StatusBadRequest, ""))
	s.Inject(metadata.Tokens, 1, metadata.Say(http.StatusOK, "a token\r\nX-Other: header"))
	s.Inject(metadata.Tokens, 1, metadata.Endless)
	// A token that has expired: the next is asked for.
	s.Inject(metadata.Values, 1, func(s *metadata.Server, w http.ResponseWriter, r *http.Request) {
		standIn.Expire()
		standIn.ServeHTTP(w, r)
	})
	r := read(s)
	got, err := r.UserData(t.Context(), AWS())
	if string(got) != "data" || err != nil {
		t.Errorf("%q, %v; the log has\n%s", got, err, &r.log)
	}
	if log := r.log.String(); !strings.Contains(log, "get a token: it answers 400, Bad Request") ||
		!strings.Contains(log, "it answers with something else than a token") || !strings.Contains(log, "it answers 401, Unauthorized") {
		t.Errorf("the log has\n%s", log)
	}
	for _, token := range []string{"", " ", "\n", "\x7f", strings.Repeat("A", maxToken+1)} {
		if isToken([]byte(token)) {
			t.Errorf("%q is taken for a token", token)
		}
	}
}

func TestAWSTurnedOff(t *testing.T) {
	r := read(metadata.Start(t, &metadata.AWS{Off: true}))
	if _, err := r.UserData(t.Context(), AWS()); !errors.Is(err, ErrNotAnswering) || strings.Count(r.log.String(), "get a token: it answers 403, Forbidden") != 5 {
		t.Errorf("%v; the log has\n%s", err, &r.log)
	}
}

func TestGoogleFlavor(t *testing.T) {
	s := metadata.Start(t, &metadata.GoogleCloud{UserData: []byte("data")})
	s.Inject(metadata.All, 1, metadata.Relabel("Metadata-Flavor", ""))
	s.Inject(metadata.All, 1, metadata.Relabel("Metadata-Flavor", "Vanilla"))
	// Whoever says that there is nothing must be Google's server as well.
	s.Inject(metadata.All, 1, func(_ *metadata.Server, w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) })
	r := read(s)
	got, err := r.UserData(t.Context(), GoogleCloud())
	if string(got) != "data" || err != nil || len(r.pauses) != 3 || strings.Count(r.log.String(), errFlavor.Error()) != 3 {
		t.Errorf("%q, %v; the log has\n%s", got, err, &r.log)
	}
}

func TestAzureWaitsForUserData(t *testing.T) {
	s := metadata.Start(t, &metadata.Azure{UserData: []byte("data")})
	missing := metadata.Say(http.StatusNotFound, "")
	s.Inject(metadata.All, 4, missing)
	r := read(s)
	if got, err := r.UserData(t.Context(), Azure()); string(got) != "data" || err != nil || strings.Count(r.log.String(), "no user data yet") != 4 {
		t.Errorf("%q, %v; the log has\n%s", got, err, &r.log)
	}
	s.Inject(metadata.All, 5, missing)
	if got, err := read(s).UserData(t.Context(), Azure()); !errors.Is(err, ErrNone) || errors.Is(err, errMissing) || got != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestAzureBase64(t *testing.T) {
	s := metadata.Start(t, &metadata.Azure{})
	for _, text := range []string{"ZGF0YQ", "ZGF0YQ==!", "ZGF0\nYQ==", "{\"error\": 1}", "=", "ZG F0"} {
		s.Inject(metadata.All, 1, metadata.Say(http.StatusOK, text))
	}
	r := read(s)
	if got, err := r.UserData(t.Context(), Azure()); !errors.Is(err, ErrNotAnswering) || got != nil || strings.Count(r.log.String(), errBase64.Error()) != 5 {
		t.Errorf("%q, %v; the log has\n%s", got, err, &r.log)
	}
	s.Heal()
	s.Inject(metadata.All, 1, metadata.Say(http.StatusOK, "ZGF0YQ==\r\n"))
	if got, err := read(s).UserData(t.Context(), Azure()); string(got) != "data" || err != nil {
		t.Errorf("with a line's end: %q, %v", got, err)
	}
}

func FuzzDecodeAzure(f *testing.F) {
	f.Add([]byte("c29tZQBkYXRh"), 9)
	f.Add([]byte("c29tZQBkYXRh\r\n"), 4)
	f.Add([]byte("c29tZQBkYX=="), 0)
	f.Add([]byte("c29t\nZQ=="), 100)
	f.Fuzz(func(t *testing.T, text []byte, limit int) {
		if limit < 0 || limit > 1<<20 {
			return
		}
		data, err := decodeAzure(text, limit)
		if len(data) > limit || err != nil && data != nil {
			t.Fatalf("%d bytes of %d, %v", len(data), limit, err)
		}
		if err == nil && len(data) < limit {
			// All of it was there: it decodes to the same as by itself.
			if whole, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text))); err != nil || !bytes.Equal(whole, data) {
				t.Fatalf("%q, want %q, %v", data, whole, err)
			}
		}
	})
}

func FuzzIsToken(f *testing.F) {
	f.Add([]byte("AQAEAL_6VhGcYv1mvN2Ks6m9ZzyFzB2CzFzVt9a3hBQnpyJ6QqQ8Rw=="))
	f.Add([]byte("with\nline"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if !isToken(b) {
			return
		}
		// What is taken for a token goes into a header as it is.
		var out bytes.Buffer
		if err := (http.Header{"X": {string(b)}}).Write(&out); err != nil || out.String() != "X: "+string(b)+"\r\n" {
			t.Fatalf("%q, %v", &out, err)
		}
	})
}
