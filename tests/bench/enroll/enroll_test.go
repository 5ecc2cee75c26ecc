package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/tests/bench/figures"
	"powercloud.unidatum.com/tests/machine"
)

func TestParse(t *testing.T) {
	if opts, err := parse([]string{"--rounds", "2"}, io.Discard); err != nil || opts.rounds != 2 {
		t.Errorf("%+v, %v", opts, err)
	}
	for _, args := range [][]string{{"--rounds", "0"}, {"--patience", "0s"}, {"argument"}} {
		if _, err := parse(args, io.Discard); err == nil {
			t.Errorf("%q was accepted", args)
		}
	}
}

func sample() report {
	round := func(joined, open time.Duration) times {
		return times{enrolled: joined * time.Second, enrollment: time.Second, opened: open * time.Second, unlock: time.Second}
	}
	return report{opts: options{rounds: 3}, accelerator: "tcg", loadBefore: "0.10 0.20 0.30", loadAfter: "1.10 0.80 0.40",
		rounds: []times{round(2, 5), round(9, 6), round(1, 4)}}
}

func TestTargets(t *testing.T) {
	want := []figures.Target{
		{What: "from the enrollment code to the answer that the node is a member", Wanted: "< 3s", Measured: "2.00s", Met: true},
		{What: "from the unlock to the first answer of the open API", Wanted: "< 5s", Measured: "5.00s"},
	}
	if got := sample().targets(); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

func TestText(t *testing.T) {
	var out bytes.Buffer
	if err := sample().writeText(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"enrolled 2.00 1.00 9.00", "open 5.00 4.00 6.00", "answer of the open API < 5s 5.00s MISSED"} {
		if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), want) {
			t.Errorf("there is no %q in:\n%s", want, &out)
		}
	}
}

// TestRequestLog makes requests to a server that notes when it has them.
func TestRequestLog(t *testing.T) {
	handled := make(chan time.Time, 1)
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { handled <- time.Now() }))
	defer server.Close()
	var log requestLog
	var at []time.Time
	for range 2 {
		request, err := http.NewRequestWithContext(log.watch(t.Context()), http.MethodPost, server.URL, strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		response, err := server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		at = append(at, <-handled)
	}
	list := log.done()
	if len(list) != 2 || list[0].answered.After(list[1].began) {
		t.Fatalf("%+v", list)
	}
	for i, r := range list {
		if at[i].Before(r.began) || at[i].After(r.answered) {
			t.Errorf("request %d was handled at %v, and is noted as %+v", i, at[i], r)
		}
	}
}

// TestRun takes one node through its life. How long that takes doesn't matter.
func TestRun(t *testing.T) {
	if diskImage == "" {
		if _, err := findImage(); err == nil || !strings.Contains(err.Error(), "bazel run //tests/bench:enroll") {
			t.Errorf("%v", err)
		}
		t.Skip("only Bazel builds what the machine starts: bazel test //tests/bench/enroll:all")
	}
	var out, progress bytes.Buffer
	if err := run(t.Context(), []string{"--rounds", "1", "--json"}, &out, &progress); err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	var got struct {
		Accelerator string           `json:"accelerator"`
		Results     []result         `json:"results"`
		Targets     []figures.Target `json:"targets"`
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || len(got.Results) != len(allFigures()) || len(got.Targets) != 2 {
		t.Fatalf("%v\n%s", err, &out)
	}
	by := map[figure]float64{}
	for _, one := range got.Results {
		by[one.Figure] = one.Median
	}
	if by[enrollment] <= 0 || by[enrolled] < by[enrollment] || by[unlock] <= 0 || by[opened] < by[unlock] {
		t.Errorf("%+v", by)
	}
	if accelerator, err := machine.Accelerator(t.Context()); err != nil || got.Accelerator != accelerator {
		t.Errorf("%s, %v", got.Accelerator, err)
	}
}
