package main

import (
	"errors"
	"strings"
	"testing"
)

const report = `<testsuites><testsuite>
<testcase name="a"></testcase>
<testcase name="b"><failure message="no">text</failure></testcase>
<testcase name="c"><skipped message="not here"></skipped></testcase>
<testcase name="d"><error></error></testcase>
</testsuite></testsuites>`

const passing = `<testsuites><testsuite><testcase name="a"></testcase></testsuite></testsuites>`

// result is an event that tells how a test ended.
func result(label, status, uri string) string {
	return `{"id":{"testResult":{"label":"` + label + `","run":1}},"testResult":{"status":"` + status +
		`","testActionOutput":[{"name":"test.log","uri":"file:///log"},{"name":"test.xml","uri":"` + uri + `"}]}}` + "\n"
}

func TestCount(t *testing.T) {
	files := map[string]string{"/mixed.xml": report, "/passing.xml": passing, "/broken.xml": "<testsuites>"}
	readFile := func(path string) ([]byte, error) {
		content, ok := files[path]
		if !ok {
			return nil, errors.New("no such file")
		}
		return []byte(content), nil
	}
	for title, c := range map[string]struct {
		events string
		want   tally
	}{
		"nothing":                  {"", tally{}},
		"cases":                    {result("//a", "FAILED", "file:///mixed.xml"), tally{1, 2, 1}},
		"no report":                {result("//a", "PASSED", "file:///none.xml"), tally{1, 0, 0}},
		"failed without a report":  {result("//a", "TIMEOUT", "file:///broken.xml"), tally{0, 1, 0}},
		"failed at the very end":   {result("//a", "FAILED", "file:///passing.xml"), tally{1, 1, 0}},
		"the last attempt counts":  {result("//a", "FAILED", "file:///mixed.xml") + result("//a", "PASSED", "file:///passing.xml"), tally{1, 0, 0}},
		"two tests":                {result("//a", "PASSED", "file:///passing.xml") + result("//b", "PASSED", "file:///passing.xml"), tally{2, 0, 0}},
		"built":                    {`{"id":{"targetCompleted":{"label":"//a"}},"completed":{"success":true}}`, tally{}},
		"not built":                {`{"id":{"targetCompleted":{"label":"//a"}},"completed":{}}`, tally{0, 1, 0}},
		"given up before building": {`{"id":{"targetCompleted":{"label":"//a"}},"aborted":{"reason":"ANALYSIS_FAILURE"}}`, tally{0, 1, 0}},
	} {
		got, err := count(strings.NewReader(c.events), readFile)
		if err != nil || got != c.want {
			t.Errorf("%s: counted %+v, %v, want %+v", title, got, err, c.want)
		}
	}
	if _, err := count(strings.NewReader("{"), readFile); err == nil {
		t.Error("events that are cut short were counted")
	}
}
