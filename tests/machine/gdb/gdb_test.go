package gdb

import (
	"bufio"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
)

// play answers as QEMU does: the interrupt, and each packet by what answers has for it. It
// returns the connection, and what has come once that is closed.
func play(t *testing.T, answers map[string]string) (net.Conn, func() []string) {
	t.Helper()
	ours, theirs := net.Pipe()
	came := make(chan []string, 1)
	go func() {
		var all []string
		defer func() {
			_ = theirs.Close() // Nobody is left to be told.
			came <- all
		}()
		reader := bufio.NewReader(theirs)
		say := func(content string) {
			_, _ = fmt.Fprintf(theirs, "$%s#%02x", content, checksum(content))
			_, _ = reader.ReadByte() // What confirms it.
		}
		if b, err := reader.ReadByte(); err != nil || b != interrupt {
			return
		}
		say("T02thread:01;")
		for {
			packet, err := reader.ReadString('#')
			if err != nil {
				return
			}
			_, _ = reader.Discard(2)
			content := strings.Trim(packet, "$#")
			all = append(all, content)
			_, _ = theirs.Write([]byte{'+'})
			if content == "c" {
				continue
			}
			answer, found := answers[content]
			if !found {
				answer = "OK"
			}
			say(answer)
		}
	}()
	return ours, func() []string {
		_ = ours.Close() // QEMU then ends.
		return <-came
	}
}

// machine has two processors.
func machine() map[string]string {
	return map[string]string{
		"qXfer:features:read:target.xml:0,100": "m<?xml version=\"1.0\"?>",
		"qfThreadInfo":                         "m01", "qsThreadInfo": "l",
		"p10": "efcdab8967452301", "p11": "46020000",
	}
}

func TestFreeze(t *testing.T) {
	answers := machine()
	answers["qfThreadInfo"] = "m01,02"
	connection, came := play(t, answers)
	if err := New(connection).Freeze(); err != nil {
		t.Fatal(err)
	}
	hold := []string{"p10", "p11", "M123456789abcdef,2:ebfe", "P11=46000000"}
	want := slices.Concat([]string{"qXfer:features:read:target.xml:0,100", "qfThreadInfo", "qsThreadInfo"},
		[]string{"Hg01"}, hold, []string{"Hg02"}, hold, []string{"c"})
	if got := came(); !slices.Equal(got, want) {
		t.Errorf("QEMU was told %q, want %q", got, want)
	}
}

func TestFreezeRefused(t *testing.T) {
	for packet, answer := range map[string]string{
		"qfThreadInfo":            "l",
		"qsThreadInfo":            "",
		"p10":                     "E14",
		"p11":                     "4602",
		"M123456789abcdef,2:ebfe": "E14",
		"P11=46000000":            "",
		"Hg01":                    "E22",
	} {
		answers := machine()
		answers[packet] = answer
		connection, came := play(t, answers)
		err := New(connection).Freeze()
		if told := came(); err == nil || slices.Contains(told, "c") {
			t.Errorf("with %q as the answer to %s: %v, told %q", answer, packet, err, told)
		}
	}
}
