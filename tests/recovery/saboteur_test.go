package recovery

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"powercloud.unidatum.com/tests/machine"
	"powercloud.unidatum.com/tests/node"
)

// maxAnswer is the size in bytes that no answer of the saboteur's exceeds.
const maxAnswer = 8 << 20

// sabotaged is a machine with the saboteur's image.
func sabotaged(t *testing.T) machine.Config {
	t.Helper()
	image, architecture := machine.Image(t)
	config := node.Machine(architecture, image)
	config.Port = true
	return config
}

// start starts a node and waits until it has an address.
func start(ctx context.Context, t *testing.T, config machine.Config) *machine.Machine {
	t.Helper()
	m := machine.Start(ctx, t, config)
	node.ExpectBanner(ctx, m)
	return m
}

// tell has the saboteur do something, and returns what it answers.
func tell(t *testing.T, m *machine.Machine, format string, values ...any) string {
	t.Helper()
	answer, done := ask(t, m, format, values...)
	if !done {
		t.Fatalf("the saboteur can't "+format+": %s", append(values, answer)...)
	}
	return answer
}

// ask tells the saboteur something that it may be unable to do.
func ask(t *testing.T, m *machine.Machine, format string, values ...any) (answer string, done bool) {
	t.Helper()
	order(t, m, format, values...)
	prefix := "saboteur: " + fmt.Sprintf(format, values...) + ": "
	lines := bufio.NewScanner(m.Port())
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() {
		answer, found := strings.CutPrefix(lines.Text(), prefix)
		if !found {
			continue // The firmware's, or to an earlier order.
		}
		return strings.CutPrefix(answer, "done ")
	}
	t.Fatalf("ask the saboteur to "+format+": %v", append(values, lines.Err())...)
	return "", false
}

// order tells the saboteur something that it won't be able to answer.
func order(t *testing.T, m *machine.Machine, format string, values ...any) {
	t.Helper()
	if _, err := fmt.Fprintf(m.Port(), format+"\n", values...); err != nil {
		t.Fatalf("tell the saboteur to "+format+": %v", append(values, err)...)
	}
}

// content is that of a file of the machine's, without the white space around it.
func content(t *testing.T, m *machine.Machine, path string) string {
	t.Helper()
	return unquote(t, tell(t, m, "read %s", path))
}

func unquote(t *testing.T, answer string) string {
	t.Helper()
	text, err := strconv.Unquote(answer)
	if err != nil {
		t.Fatalf("the saboteur answers %s: %v", answer, err)
	}
	return strings.TrimSpace(text)
}
