package boot

import (
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"powercloud.unidatum.com/go/sys/atomicfile"
	"powercloud.unidatum.com/go/sys/pstore"
)

// A boot loop is noticed by counting the panics that the kernel has saved since
// the last good boot: the store of last words is the counter. Only a panic
// writes to the firmware's flash memory, which it does anyway; a boot that goes
// well writes nothing, and the first good boot after panics removes them. A
// counter in an EFI variable would be written twice at every boot.
//
// Some stores, ramoops for one, have only the last panic. The count therefore
// also goes on within the dumps: after a panic, PID 1 writes into the kernel's
// log every so often how many there were, and the next dump has that line.
//
// A machine that hangs and is reset by its watchdog leaves no panic. That loop
// is slow by itself: it takes the watchdog's time.

// keptDumps is how many dumps stay in the store until the boot has proved good.
// The firmware's store is small, and a panic that finds it full isn't saved.
const keptDumps = 5

// crashWait is how long pcd's start waits after a number of panics. Two may be
// bad luck; from the third on it is a loop, and somebody who watches the console
// gets the time to read it.
func crashWait(panics int) time.Duration {
	switch {
	case panics < 3:
		return 0
	case panics == 3:
		return 30 * time.Second
	case panics == 4:
		return time.Minute
	}
	return 5 * time.Minute
}

// mark is the line that carries the count from dump to dump.
const mark = "panics since the last good boot: "

// maxPanics is where counting ends: the line may have been damaged.
const maxPanics = 1000

// crashes are what earlier boots have left. It is safe for use by several
// goroutines at once.
type crashes struct {
	dir string

	mu     sync.Mutex
	dumps  []pstore.Dump
	panics int
}

// findCrashes reads the store, says in short what is in it, keeps all of it in
// the run directory, and removes from the store what is too much.
func findCrashes(m Machine, log *slog.Logger) *crashes {
	c := &crashes{dir: m.Pstore}
	var err error
	c.dumps, err = pstore.Read(m.Pstore)
	if err != nil {
		log.Warn("not all that the kernel saved can be read", "err", err)
	}
	for _, d := range c.dumps {
		if d.Reason == "Panic" || d.Reason == "" {
			c.panics = min(max(c.panics, marked(d.Text))+1, maxPanics)
		}
		if d.Reason == pstore.Ended {
			first, _, _ := strings.Cut(d.Text, "\n")
			log.Warn("pcd had crashed in an earlier boot", "said", strings.TrimPrefix(first, wordsPrefix))
			continue
		}
		log.Warn("an earlier boot ended badly", "reason", d.Reason, "said", d.Summary())
	}
	if len(c.dumps) > 0 {
		// pcd copies it to the disk, once that is open.
		text, err := pstore.Encode(c.dumps)
		if err == nil {
			err = keep(m.RunDir, pstore.KeptName, string(text))
		}
		if err != nil {
			log.Warn("what earlier boots ended with can't be kept in memory", "err", err)
		}
	}
	if extra := len(c.dumps) - keptDumps; extra > 0 {
		c.remove(log, c.dumps[:extra])
		c.dumps = c.dumps[extra:]
	}
	return c
}

// marked returns the count that a dump carries, 0 without one.
func marked(text string) int {
	at := strings.LastIndex(text, mark)
	if at < 0 {
		return 0
	}
	line, _, _ := strings.Cut(text[at+len(mark):], "\n")
	count, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || count < 0 {
		return 0
	}
	return min(count, maxPanics)
}

// mark returns the line to write into the kernel's log, and false when none is
// needed.
func (c *crashes) mark() (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return mark + strconv.Itoa(c.panics), c.panics > 0
}

// forgive empties the store: this boot is a good one. It returns the line that
// makes earlier marks void.
func (c *crashes) forgive(log *slog.Logger) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(log, c.dumps)
	c.dumps, c.panics = nil, 0
	return mark + "0"
}

func (c *crashes) remove(log *slog.Logger, dumps []pstore.Dump) {
	for _, d := range dumps {
		if err := pstore.Remove(c.dir, d); err != nil {
			log.Warn("what an earlier boot ended with can't be removed", "err", err)
		}
	}
}

// keep writes a file in the run directory whole or not at all.
func keep(dir, name, text string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, name), []byte(text), 0o600)
}
