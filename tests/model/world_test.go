package model

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/keys/keystest"
	"powercloud.unidatum.com/go/store/chunk"
	"powercloud.unidatum.com/go/store/manifest"
	"powercloud.unidatum.com/go/store/rollback"
	"powercloud.unidatum.com/go/store/storetest"
)

// contents is how many different contents objects have. The one at largeContent
// has two chunks, of which the second is another content.
const (
	contents     = 6
	largeContent = contents - 1
)

// fixture is what all worlds of a test share.
type fixture struct {
	cluster   keystest.Cluster
	chunks    *chunk.Sealer
	manifests *manifest.Sealer
	contents  [][]byte
	ids       [][]chunk.ID
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{cluster: keystest.First(t)}
	root := f.cluster.Root(t)
	var err error
	if f.chunks, err = chunk.NewSealer(root); err != nil {
		t.Fatal(err)
	}
	if f.manifests, err = manifest.NewSealer(root); err != nil {
		t.Fatal(err)
	}
	for i, size := range []int{0, 1, 300, 300, 5000} {
		f.contents = append(f.contents, storetest.Content(byte(i), size))
	}
	f.contents = append(f.contents, append(make([]byte, chunk.Size), f.contents[2]...))
	for _, content := range f.contents {
		var ids []chunk.ID
		for piece := range slices.Chunk(content, chunk.Size) {
			ids = append(ids, f.chunks.Identify(piece).ID)
		}
		f.ids = append(f.ids, ids)
	}
	return f
}

// world is a script under way.
type world struct {
	fixture *fixture
	script  script
	gate    gate
	// members are the locations, places what they consist of.
	members  []*member
	places   []*place
	clients  []*client
	model    *model
	marks    *marks
	clock    time.Time
	moment   int
	catalogs string
	log      func(format string, args ...any)
}

// newWorld returns a cluster whose header is at every location.
func newWorld(f *fixture, s script, log func(string, ...any)) *world {
	w := &world{fixture: f, script: s, clock: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), log: log}
	w.marks = &marks{recorded: map[rollback.Key]rollback.Mark{}}
	w.model = newModel(w)
	for i, layout := range s.members {
		l := newMember(i, layout)
		for range layout.total {
			p := newPlace(len(w.places), l, w.model)
			l.add(p)
			w.places = append(w.places, p)
		}
		w.members = append(w.members, l)
		if err := l.store(blob.Header(), f.cluster.Header); err != nil {
			panic(err)
		}
	}
	for _, p := range w.places {
		p.others = w.places
		p.save()
	}
	for _, options := range s.clients {
		w.newClient(options)
	}
	return w
}

func (w *world) newClient(options clientOptions) *client {
	c := &client{index: len(w.clients), options: options, world: w, quorum: options.quorum, random: newRandom(w.script.seed, len(w.clients))}
	if c.quorum == 0 {
		c.quorum = len(w.members)/2 + 1
	}
	w.clients = append(w.clients, c)
	return c
}

// play runs the script and returns what was wrong, or nil.
func (w *world) play() (err error) {
	if slices.ContainsFunc(w.script.clients, func(c clientOptions) bool { return c.catalog }) {
		if w.catalogs, err = os.MkdirTemp("", "catalog"); err != nil {
			return err
		}
		defer os.RemoveAll(w.catalogs)
	}
	defer w.killAll()
	for i, s := range w.script.steps {
		w.log("%2d %s", i, s)
		if err := w.do(s); err != nil {
			return fmt.Errorf("step %d, %s: %w", i, s, err)
		}
		if w.model.failure != nil {
			return fmt.Errorf("step %d, %s: %w", i, s, w.model.failure)
		}
	}
	return w.conclude()
}

// tick returns a new moment.
func (w *world) tick() int {
	w.moment++
	return w.moment
}

// do does one step.
func (w *world) do(s step) error {
	p := w.places[s.place%len(w.places)]
	c := w.clients[s.client%len(w.clients)]
	switch {
	case s.do.command():
		if err := w.finish(c); err != nil {
			return err
		}
		c.begin(s)
		if s.stop > 0 {
			return w.advance(c, s.stop, s.mask)
		}
		return w.advance(c, -1, 0)
	case s.do == proceed:
		return w.advance(c, -1, 0)
	case s.do == crash:
		return w.kill(c, s.mask)
	case s.do == cancel:
		return w.interrupt(c, s.mask)
	case s.do == fault:
		p.misbehave(faultKind(s.option), mix(w.script.seed, uint64(w.tick())))
	case s.do == heal:
		p.misbehave(sound, 0)
	case s.do == harm:
		p.suffer(harmKind(s.option), mix(w.script.seed, uint64(w.moment)), w.tick())
	case s.do == snapshot:
		p.save()
	case s.do == wait:
		w.clock = w.clock.Add(waits[s.option])
	}
	return nil
}

// advance has a client's command do as many rounds of calls, or all of them when
// rounds is negative, and after that those at the locations of a mask. It returns
// early when the command has ended or all its calls stall.
func (w *world) advance(c *client, rounds int, mask places) error {
	for c.command != nil && c.command.end == 0 {
		synctest.Wait()
		if c.command.finished.Load() {
			return w.ended(c)
		}
		ready, stalled := w.gate.of(c)
		if len(ready) == 0 && stalled > 0 {
			// Readers do without a location that stalls, after a while.
			<-time.After(time.Minute)
			synctest.Wait()
			if c.command.finished.Load() {
				continue
			}
			ready, stalled = w.gate.of(c)
		}
		switch {
		case len(ready)+stalled == 0:
			return fmt.Errorf("%s hangs", c.command)
		case rounds == 0:
			w.gate.release(slices.DeleteFunc(ready, func(call *call) bool { return !mask.has(call.handle.place.index) }))
			return w.model.failure
		case len(ready) == 0:
			return nil
		}
		w.gate.release(ready)
		if w.model.failure != nil {
			return w.model.failure
		}
		rounds--
	}
	return nil
}

// finish brings a client's command to its end; one that a stalled location keeps
// from it is interrupted.
func (w *world) finish(c *client) error {
	if err := w.advance(c, -1, 0); err != nil {
		return err
	}
	return w.interrupt(c, 0)
}

// interrupt does the calls at some locations, tells the command to stop, and waits
// until it has.
func (w *world) interrupt(c *client, mask places) error {
	if c.command == nil || c.command.end != 0 {
		return nil
	}
	if err := w.advance(c, 0, mask); err != nil || c.command.end != 0 {
		return err
	}
	c.command.cancelled = true
	c.command.cancel()
	return w.advance(c, -1, 0)
}

// kill does the calls at some locations and kills the client's process.
func (w *world) kill(c *client, mask places) error {
	if c.command == nil || c.command.end != 0 {
		return nil
	}
	if err := w.advance(c, 0, mask); err != nil || c.command.end != 0 {
		return err
	}
	c.command.dead = true
	c.command.cancel()
	err := w.advance(c, -1, 0)
	c.session = nil
	return err
}

// killAll ends every command.
func (w *world) killAll() {
	for _, c := range w.clients {
		w.model.failure = nil
		if err := w.kill(c, 0); err != nil {
			w.log("while cleaning up: %v", err)
		}
	}
}

// ended has the model judge a command.
func (w *world) ended(c *client) error {
	cmd := c.command
	cmd.end = w.tick()
	cmd.cancel()
	w.log("   = %s", cmd)
	if c.options.catalog && (cmd.do == ls || cmd.do == collect || cmd.do == bury) {
		c.deceived |= cmd.lied
	}
	if !cmd.dead {
		w.model.judge(cmd)
	}
	cmd.session.unfinished = cmd.session.unfinished || cmd.do.writes() && cmd.err != nil
	if w.model.failure != nil {
		return w.model.failure
	}
	return nil
}

// idle reports whether no command is under way.
func (w *world) idle() bool {
	return !slices.ContainsFunc(w.model.commands, func(c *command) bool { return c.end == 0 })
}
