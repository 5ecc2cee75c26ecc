package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/url"
)

// tally counts test cases.
type tally struct {
	passed, failed, skipped int
}

func (t *tally) add(o tally) {
	t.passed += o.passed
	t.failed += o.failed
	t.skipped += o.skipped
}

// event is the part that matters here of a message of Bazel's build event
// protocol, as JSON (build_event_stream.proto).
type event struct {
	ID struct {
		TestResult      *testRun `json:"testResult"`
		TargetCompleted *struct {
			Label string `json:"label"`
		} `json:"targetCompleted"`
	} `json:"id"`
	Aborted    *struct{} `json:"aborted"`
	Completed  *struct{ Success bool }
	TestResult *struct {
		Status string `json:"status"`
		Output []struct {
			Name string `json:"name"`
			URI  string `json:"uri"`
		} `json:"testActionOutput"`
	} `json:"testResult"`
}

// testRun identifies one run of a test, or of a shard of it. Of several
// attempts the last one counts.
type testRun struct {
	Label string `json:"label"`
	Run   int    `json:"run"`
	Shard int    `json:"shard"`
}

// count reads a stream of events.
func count(events io.Reader, readFile func(string) ([]byte, error)) (tally, error) {
	var total tally
	runs := map[testRun]tally{}
	decoder := json.NewDecoder(events)
	for {
		var e event
		err := decoder.Decode(&e)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return tally{}, fmt.Errorf("reading the build events: %w", err)
		}
		switch {
		case e.ID.TargetCompleted != nil:
			if e.Aborted != nil || e.Completed == nil || !e.Completed.Success {
				total.failed++
			}
		case e.ID.TestResult != nil && e.TestResult != nil:
			report := ""
			for _, output := range e.TestResult.Output {
				if output.Name == "test.xml" {
					report = output.URI
				}
			}
			runs[*e.ID.TestResult] = countRun(e.TestResult.Status == "PASSED", report, readFile)
		}
	}
	for _, t := range runs {
		total.add(t)
	}
	return total, nil
}

// countRun counts the cases in the report of one run. A run that failed has at
// least one that failed, whatever the report says; one without a readable
// report is one case.
func countRun(passed bool, report string, readFile func(string) ([]byte, error)) tally {
	t := readReport(report, readFile)
	switch {
	case !passed && t.failed == 0:
		t.failed = 1
	case passed && t == tally{}:
		t.passed = 1
	}
	return t
}

// readReport counts the cases in a test.xml.
func readReport(uri string, readFile func(string) ([]byte, error)) tally {
	var t tally
	location, err := url.Parse(uri)
	if err != nil || location.Scheme != "file" {
		return t
	}
	content, err := readFile(location.Path)
	if err != nil {
		return t
	}
	var report struct {
		Suites []struct {
			Cases []struct {
				Failure *struct{} `xml:"failure"`
				Error   *struct{} `xml:"error"`
				Skipped *struct{} `xml:"skipped"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if xml.Unmarshal(content, &report) != nil {
		return t
	}
	for _, suite := range report.Suites {
		for _, c := range suite.Cases {
			switch {
			case c.Failure != nil || c.Error != nil:
				t.failed++
			case c.Skipped != nil:
				t.skipped++
			default:
				t.passed++
			}
		}
	}
	return t
}
