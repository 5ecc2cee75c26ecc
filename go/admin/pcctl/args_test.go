package pcctl

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v3"

	"powercloud.unidatum.com/go/admin/command"
	"powercloud.unidatum.com/go/admin/prompt"
)

func testRoot() *cli.Command {
	return newRoot(command.Env{Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}}.WithDefaults(), prompt.Secrets{})
}

func TestArrange(t *testing.T) {
	for _, test := range []struct{ given, arranged string }{
		{"", ""},
		{"ls", "ls"},
		{"-repo ./a ls", "--repo=./a ls"},
		{"--repo ./a --quorum=2 put -json a -b --c --", "--repo=./a --quorum=2 put --json -- a -b --c --"},
		{"put --json=false - x", "put --json=false -- - x"},
		{"put -- --json x", "put -- --json x"},
		{"-- ls -- -x", "ls -- -x"},
		{"--repo= ls", "--repo= ls"},
		{"--repo -x ls", "--repo=-x ls"},
		{"gc --grace 1h --dry-run", "gc --grace=1h --dry-run"},
		{"-h", "--help"},
		{"gc -help", "gc --help"},
		{"completion bash", "completion bash"},
		{"--rep --generate-shell-completion", "--rep --generate-shell-completion"},
	} {
		arranged, err := arrange(testRoot(), append([]string{"pcctl"}, strings.Fields(test.given)...))
		if err != nil || strings.Join(arranged[1:], " ") != test.arranged {
			t.Errorf("%q: %q, %v; want %q", test.given, arranged, err, test.arranged)
		}
	}
	for _, bad := range []string{"--nope", "nope", "ls --nope", "ls --repo x", "--quorum", "gc --grace", "---repo x", "--=x", "gc --dry-run=", "completion nope", "-5 ls"} {
		if arranged, err := arrange(testRoot(), append([]string{"pcctl"}, strings.Fields(bad)...)); err == nil {
			t.Errorf("%q: %q has no error", bad, arranged)
		}
	}
}

// What reaches a command is what was typed, byte for byte.
func TestArgumentsArriveAsTheyAre(t *testing.T) {
	given := []string{" -x", "", "--json", "--", "help", "h", "\t", "--generate"}
	for _, first := range []string{"a", " --json", "help", ""} {
		root := testRoot()
		var got []string
		root.Command("put").Action = func(_ context.Context, cmd *cli.Command) error {
			got = cmd.Args().Slice()
			return nil
		}
		want := append([]string{first}, given...)
		args, err := arrange(root, append([]string{"pcctl", "--repo", "x", "put"}, want...))
		if err != nil {
			t.Fatal(err)
		}
		if err := root.Run(t.Context(), args); err != nil || !slices.Equal(got, want) {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
}

// Every command explains itself, and those that print a result do so in JSON
// too.
func TestHelpIsComplete(t *testing.T) {
	silent := map[string]bool{"pcctl": true, "rm": true, "help": true, "completion": true, "recovery-key": true, "node": true}
	shells := map[string]bool{"bash": true, "zsh": true, "fish": true, "powershell": true}
	err := testRoot().Walk(func(cmd *cli.Command) error {
		if cmd.Usage == "" {
			t.Errorf("%s has no usage", cmd.FullName())
		}
		if !shells[cmd.Name] && cmd.Description == "" {
			t.Errorf("%s has no description", cmd.FullName())
		}
		if !shells[cmd.Name] && !silent[cmd.Name] && findFlag(cmd, "json") == nil {
			t.Errorf("%s has no --json", cmd.FullName())
		}
		for _, flag := range cmd.Flags {
			documented, ok := flag.(cli.DocGenerationFlag)
			if !ok || documented.GetUsage() == "" {
				t.Errorf("%s: flag %s has no usage", cmd.FullName(), flag.Names()[0])
			}
			name := "--" + flag.Names()[0]
			if cmd.Name != "pcctl" && !strings.Contains(cmd.UsageText, name) && !strings.Contains(cmd.Description, name) {
				t.Errorf("%s: its text doesn't mention %s", cmd.FullName(), name)
			}
		}
		for line := range strings.SplitSeq(cmd.Description, "\n") {
			if len(line) > 80 {
				t.Errorf("%s: a line of its description is too long: %q", cmd.FullName(), line)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestCompletion(t *testing.T) {
	for _, test := range []struct{ words, suggestions string }{
		{"", "init put get ls rm check repair gc passphrase recovery-key login node status version completion help"},
		{"-", "--repo --quorum --help"},
		{"--r", "--repo"},
		{"--repo", ""},
		{"--repo x", "init put get ls rm check repair gc passphrase recovery-key login node status version completion help"},
		{"--repo x g", ""},
		{"gc", ""},
		{"gc -", "--tombstones --grace --dry-run --json --help"},
		{"gc --d", "--dry-run"},
		{"gc --grace", ""},
		{"gc --dry-run --g", "--grace"},
		{"put name", ""},
		{"completion", "bash zsh fish powershell"},
		{"recovery-key", "add"},
		{"recovery-key add -", "--json --help"},
		{"help", "init put get ls rm check repair gc passphrase recovery-key login node status version completion help"},
		{"put -- -", ""},
	} {
		var stdout, stderr bytes.Buffer
		args := append(append([]string{"pcctl"}, strings.Fields(test.words)...), completionRequest)
		if status := Run(t.Context(), Env{Args: args, Stdout: &stdout, Stderr: &stderr}); status != 0 {
			t.Errorf("%q: status %d, %s", test.words, status, stderr.String())
		}
		var suggestions []string
		for line := range strings.Lines(stdout.String()) {
			word, description, ok := strings.Cut(line, "\t")
			if !ok || strings.TrimSpace(description) == "" {
				t.Errorf("%q: %q has no description", test.words, line)
			}
			suggestions = append(suggestions, word)
		}
		if got := strings.Join(suggestions, " "); got != test.suggestions {
			t.Errorf("%q: suggestions %q, want %q", test.words, got, test.suggestions)
		}
	}
}
