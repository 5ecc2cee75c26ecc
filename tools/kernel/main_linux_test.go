package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	good := []string{"-architecture", "arm64", "-root", "r", "-source", "s", "-settings", "k", "-scratch", "w", "-image", "i", "-config", "c", "-map", "m"}
	o, err := parse(good)
	if err != nil || o.architecture.linux != "arm64" || o.scratch != "w" || o.settings != "k" {
		t.Errorf("it was read as %+v, %v", o, err)
	}
	configure := append(slices.Clone(good[:8]), "-scratch", "w", "-config", "c", "-configure-only")
	if o, err := parse(configure); err != nil || !o.configureOnly || o.config != "c" {
		t.Errorf("it was read as %+v, %v", o, err)
	}
	for want, arguments := range map[string][]string{
		"neither -image nor -map":   append(slices.Clone(good), "-configure-only"),
		"it must be amd64 or arm64": append([]string{"-architecture", "i386"}, good[2:]...),
		"every flag":                good[2:],
		"nothing else":              append(slices.Clone(good), "a"),
		"not defined":               append([]string{"-other"}, good...),
		"it takes every flag":       append(slices.Clone(good[:14]), "-map", ""),
	} {
		if _, err := parse(arguments); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v, want one with %q", arguments, err, want)
		}
	}
}

func TestRunQuietly(t *testing.T) {
	err := runQuietly(exec.Command("/bin/sh", "-c", "for i in $(seq 100); do echo line $i; done; echo wrong >&2; exit 3"))
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.HasSuffix(err.Error(), "line 100\nwrong") {
		t.Errorf("the error is %v", err)
	}
	if got := strings.Count(err.Error(), "line "); got != shown-1 {
		t.Errorf("it shows %d lines", got)
	}
	if err := runQuietly(exec.Command("/bin/sh", "-c", "echo fine")); err != nil {
		t.Error(err)
	}
}
