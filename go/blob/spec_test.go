package blob_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"powercloud.unidatum.com/go/blob"
)

// requireCorpus fails a fuzz target that would start from nothing.
func requireCorpus(f *testing.F, target string) {
	f.Helper()
	seeds, err := os.ReadDir(filepath.Join("testdata", "fuzz", target))
	if err != nil || len(seeds) == 0 {
		f.Fatalf("%s has no seed corpus (%v)", target, err)
	}
}

func TestParseSpec(t *testing.T) {
	aws := blob.S3Spec{Bucket: "b", Region: "us-east-1", Creds: "AWS", Endpoint: "https://s3.us-east-1.amazonaws.com"}
	with := func(s blob.S3Spec, change func(*blob.S3Spec)) blob.S3Spec { change(&s); return s }
	for text, want := range map[string]blob.Spec{
		"/srv/pc":       {Scheme: blob.SchemeDir, Dir: "/srv/pc"},
		"./home":        {Scheme: blob.SchemeDir, Dir: "./home"},
		"home":          {Scheme: blob.SchemeDir, Dir: "home"},
		".":             {Scheme: blob.SchemeDir, Dir: "."},
		"a b":           {Scheme: blob.SchemeDir, Dir: "a b"},
		"./s3://b":      {Scheme: blob.SchemeDir, Dir: "./s3://b"},
		`C:\pc`:         {Scheme: blob.SchemeDir, Dir: `C:\pc`},
		"/srv/a:b":      {Scheme: blob.SchemeDir, Dir: "/srv/a:b"},
		"2026:pc":       {Scheme: blob.SchemeDir, Dir: "2026:pc"},
		"/srv/größe":    {Scheme: blob.SchemeDir, Dir: "/srv/größe"},
		"node://home-1": {Scheme: blob.SchemeNode, Node: "home-1"},
		"s3://b":        {Scheme: blob.SchemeS3, S3: aws},
		"s3://b/":       {Scheme: blob.SchemeS3, S3: aws},
		"s3://b/p/q/":   {Scheme: blob.SchemeS3, S3: with(aws, func(s *blob.S3Spec) { s.Prefix = "p/q" })},
		"s3://b?region=eu-1": {Scheme: blob.SchemeS3, S3: with(aws, func(s *blob.S3Spec) {
			s.Region, s.Endpoint = "eu-1", "https://s3.eu-1.amazonaws.com"
		})},
		"s3://b/pc?endpoint=https://ID.r2.example&region=auto&creds=r2": {Scheme: blob.SchemeS3, S3: blob.S3Spec{
			Bucket: "b", Prefix: "pc", Endpoint: "https://id.r2.example", Region: "auto", Creds: "R2", PathStyle: true}},
		"s3://b?path_style=false&endpoint=http://[::1]:9000/": {Scheme: blob.SchemeS3, S3: with(aws, func(s *blob.S3Spec) {
			s.Endpoint = "http://[::1]:9000"
		})},
		"s3://b?endpoint=http://h:9000&path_style=0": {Scheme: blob.SchemeS3, S3: with(aws, func(s *blob.S3Spec) {
			s.Endpoint = "http://h:9000"
		})},
		"s3://b.c_D?path_style=true": {Scheme: blob.SchemeS3, S3: with(aws, func(s *blob.S3Spec) {
			s.Bucket, s.PathStyle = "b.c_D", true
		})},
		"s3://b.c?path_style=false&endpoint=http://h": {Scheme: blob.SchemeS3, S3: with(aws, func(s *blob.S3Spec) {
			s.Bucket, s.Endpoint = "b.c", "http://h"
		})},
	} {
		got, err := blob.ParseSpec(text)
		if err != nil {
			t.Errorf("ParseSpec(%q): %v", text, err)
			continue
		}
		if got.String() != text {
			t.Errorf("ParseSpec(%q) gives back %q", text, got)
		}
		if got.Scheme != want.Scheme || got.Dir != want.Dir || got.Node != want.Node || got.S3 != want.S3 {
			t.Errorf("ParseSpec(%q) = %+v, want %+v", text, got, want)
		}
	}
}

func TestParseSpecErasure(t *testing.T) {
	text := "ec:2:/a;s3://b/pc?region=x&creds=r2;node://n"
	spec, err := blob.ParseSpec(text)
	if err != nil {
		t.Fatal(err)
	}
	if spec.Scheme != blob.SchemeErasure || spec.Data != 2 || len(spec.Parts) != 3 || spec.String() != text {
		t.Fatalf("ParseSpec(%q) = %+v", text, spec)
	}
	schemes := []blob.Scheme{spec.Parts[0].Scheme, spec.Parts[1].Scheme, spec.Parts[2].Scheme}
	if want := []blob.Scheme{blob.SchemeDir, blob.SchemeS3, blob.SchemeNode}; !reflect.DeepEqual(schemes, want) {
		t.Errorf("parts are %v, want %v", schemes, want)
	}
	if spec.Parts[1].S3.Creds != "R2" || spec.Parts[1].String() != "s3://b/pc?region=x&creds=r2" {
		t.Errorf("part 2 is %+v", spec.Parts[1])
	}
}

func TestParseSpecRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "empty",
		" /a":                                 "blank",
		"/a ":                                 "blank",
		"/a\x00b":                             "printed",
		"/a\nb":                               "printed",
		"/a\x1b[2J":                           "printed",
		"/a\xff":                              "UTF-8",
		"~":                                   "$HOME",
		"~/pc":                                "$HOME",
		"http://host/x":                       "kind of location",
		"S3://b":                              "kind of location",
		"s3:b":                                "kind of location",
		"s3:/b":                               "kind of location",
		"file:/srv":                           "kind of location",
		"node:home-1":                         "kind of location",
		"node://":                             "node's name",
		"node://a/b":                          "node's name",
		"node://a:7443":                       "node's name",
		"node://-a":                           "node's name",
		"node://" + strings.Repeat("a", 64):   "node's name",
		"s3://":                               "bucket is missing",
		"s3:///p":                             "bucket is missing",
		"s3://..":                             "no bucket",
		"s3://b.c":                            "path_style=true over HTTPS",
		"s3://B":                              "path_style=true",
		"s3://-b":                             "host name",
		"s3://b$":                             "bucket's name has",
		"s3://b//p":                           "prefix",
		"s3://b/p//q":                         "prefix",
		"s3://b/../q":                         "prefix",
		"s3://b/a%20b":                        "prefix",
		"s3://b/a#b":                          "prefix",
		"s3://b/" + strings.Repeat("a", 901):  "prefix",
		"s3://b?":                             "option is empty",
		"s3://b?region=x&":                    "option is empty",
		"s3://b?regoin=x":                     "unknown option regoin;",
		"s3://b?region=x&region=y":            "given twice",
		"s3://b?region=":                      "region",
		"s3://b?region=a/b":                   "region",
		"s3://b?creds=a-b":                    "creds",
		"s3://b?path_style=yes":               "true or false",
		"s3://b?path_style":                   "true or false",
		"s3://b?endpoint=h:9000":              "endpoint",
		"s3://b?endpoint=ftp://h":             "endpoint",
		"s3://b?endpoint=https://":            "endpoint",
		"s3://b?endpoint=https://h/p":         "endpoint",
		"s3://b?endpoint=https://h?x=y":       "endpoint",
		"s3://b?endpoint=https://h#x":         "endpoint",
		"s3://b?endpoint=https://h:0":         "endpoint",
		"s3://b?endpoint=https://h:":          "endpoint",
		"s3://b?endpoint=https://h:65536":     "endpoint",
		"s3://b?endpoint=https://a..b":        "endpoint",
		"s3://b?endpoint=https://[fe80::1%e]": "endpoint",
		"ec:":                                 "ec:K:LOC",
		"ec:2":                                "ec:K:LOC",
		"ec:2:/a":                             "at least 1",
		"ec:0:/a;/b":                          "at least 1",
		"ec:2:/a;/b":                          "at least 1",
		"ec:-1:/a;/b":                         "at least 1",
		"ec:01:/a;/b":                         "at least 1",
		"ec:+1:/a;/b":                         "at least 1",
		"ec:x:/a;/b":                          "at least 1",
		"ec:99999999999999999999:/a;/b":       "at least 1",
		"ec:1:/a;":                            "part 2",
		"ec:1:/a;ec:1:/b;/c":                  "nested",
		"ec:1:/a;/a":                          "given twice",
		"ec:1:/a;/b/../a":                     "same place",
		"ec:1:" + strings.Repeat("/a;", 255) + "/b": "255 is the most",
		"/" + strings.Repeat("a", 64<<10):           "longer than",
	} {
		_, err := blob.ParseSpec(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseSpec(%.80q): %v, want an error with %q", text, err, want)
		}
		if err != nil && (strings.ContainsAny(err.Error(), "\n\x1b\x00") || len(err.Error()) > 600) {
			t.Errorf("ParseSpec(%.80q): the error is not one short line: %q", text, err)
		}
	}
}

func TestParseSpecKeepsSecretsOutOfErrors(t *testing.T) {
	const secret = "wJalrXUtnFEMI"
	for _, text := range []string{
		"s3://AKIA:" + secret + "@bucket/pc", "s3://AKIA:" + secret, "s3://b?secret=" + secret,
		"s3://b?endpoint=https://u:" + secret + "@h", "s3://b?region=x&" + secret + "=1", "s3://b?creds=x&" + secret,
		"https://u:" + secret + "@h/b", "ec:1:/a;s3://b?key=" + secret, "ec:1:/a;s3://k:" + secret + "@b",
		"s3://b?endpoint=https://" + secret + "%zz", "s3://b?endpoint=http://h:" + secret,
	} {
		for _, parse := range []func(string) error{
			func(s string) error { _, err := blob.ParseSpec(s); return err },
			func(s string) error { _, err := blob.ParseList("/x," + s); return err },
		} {
			if err := parse(text); err == nil || strings.Contains(strings.ToLower(err.Error()), strings.ToLower(secret)) {
				t.Errorf("%q: %v", text, err)
			}
		}
	}
}

func TestParseList(t *testing.T) {
	list := "/srv/pc,s3://b/pc?region=us-east-2,node://home-1,ec:2:/a;/b;/c"
	specs, err := blob.ParseList(list)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, spec := range specs {
		texts = append(texts, spec.String())
	}
	if got := strings.Join(texts, ","); got != list || len(specs) != 4 {
		t.Errorf("ParseList gives back %q", got)
	}
}

func TestParseListRefuses(t *testing.T) {
	cwd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for list, want := range map[string]string{
		"":                          "empty",
		",":                         "location 1 of the list is empty",
		"/a,":                       "location 2 of the list is empty",
		"/a,,/b":                    "location 2 of the list is empty",
		"/a, /b":                    "blank",
		"/a,/a":                     "/a is given twice",
		"/a,/b/../a/":               "same place",
		"./x," + cwd + "/x":         "same place",
		"node://a,node://a":         "given twice",
		"ec:1:/a;/b,/a":             "given twice",
		"ec:1:/a;/b,ec:1:/c;/b":     "given twice",
		"s3://b/p,s3://b/p/":        "same place",
		"s3://b,s3://b?region=eu-1": "same place",
		"s3://b?endpoint=https://h,s3://b?endpoint=https://H:443&creds=x": "same place",
		strings.Repeat("/a,", 255) + "/b":                                 "255 is the most",
		strings.Repeat("a", 64<<10+1):                                     "longer than",
	} {
		if _, err := blob.ParseList(list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseList(%.80q): %v, want an error with %q", list, err, want)
		}
	}
	for _, list := range []string{"s3://b/p,s3://b/q", "s3://b,s3://c", "/a,/a/b", "s3://b?endpoint=http://h,s3://b?endpoint=https://h", "node://a,/a"} {
		if _, err := blob.ParseList(list); err != nil {
			t.Errorf("ParseList(%q): %v", list, err)
		}
	}
}

func FuzzParseSpec(f *testing.F) {
	requireCorpus(f, "FuzzParseSpec")
	f.Fuzz(func(t *testing.T, text string) {
		spec, err := blob.ParseSpec(text)
		if err != nil {
			checkErrorLine(t, err)
			return
		}
		if spec.String() != text {
			t.Fatalf("%q gives back %q", text, spec)
		}
		again, err := blob.ParseSpec(spec.String())
		if err != nil || !reflect.DeepEqual(again, spec) {
			t.Fatalf("%q parses as %+v, then as %+v, %v", text, spec, again, err)
		}
		if spec.Scheme == blob.SchemeErasure && (spec.Data < 1 || spec.Data >= len(spec.Parts) || len(spec.Parts) > 255) {
			t.Fatalf("%q has %d of %d", text, spec.Data, len(spec.Parts))
		}
		if strings.ContainsAny(spec.S3.Endpoint, "@?#%") {
			t.Fatalf("%q has the endpoint %q", text, spec.S3.Endpoint)
		}
	})
}

func FuzzParseList(f *testing.F) {
	requireCorpus(f, "FuzzParseList")
	f.Fuzz(func(t *testing.T, list string) {
		specs, err := blob.ParseList(list)
		if err != nil {
			checkErrorLine(t, err)
			return
		}
		texts := make([]string, len(specs))
		for i, spec := range specs {
			texts[i] = spec.String()
		}
		if got := strings.Join(texts, ","); got != list {
			t.Fatalf("%q gives back %q", list, got)
		}
	})
}

func checkErrorLine(t *testing.T, err error) {
	t.Helper()
	for _, r := range err.Error() {
		if r < ' ' || r == 0x7f {
			t.Fatalf("the error has a control character: %q", err)
		}
	}
	if len(err.Error()) > 1000 {
		t.Fatalf("the error has %d bytes: %q", len(err.Error()), err)
	}
}
