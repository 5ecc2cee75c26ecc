package model

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/quorum"
	"powercloud.unidatum.com/go/store"
	"powercloud.unidatum.com/go/store/catalog"
	"powercloud.unidatum.com/go/store/gc"
	"powercloud.unidatum.com/go/store/repair"
	"powercloud.unidatum.com/go/store/repository"
	"powercloud.unidatum.com/go/store/rollback"
	"powercloud.unidatum.com/go/store/storetest"
)

// client is somebody who calls pcctl.
type client struct {
	index   int
	options clientOptions
	world   *world
	quorum  int
	random  *lockedRandom
	// command is the command under way, or the last one.
	command *command
	session *session
	// deceived are the places that lied while the catalog was written.
	deceived places
}

// session is what a process keeps from one command to the next.
type session struct {
	// locations are the locations as the process sees them.
	locations []blob.Location
	repo      *repository.Repository
	store     *store.Store
	// refused are the places of the locations that could not be reached when it
	// began, and are not asked again.
	refused places
	warned  atomic.Bool
	// unfinished is set once a write has failed: from then on, a flush asks for what
	// that write has left behind as well, and may fail where a new process would not.
	unfinished bool
}

// command is one command, under way or done.
type command struct {
	step
	client  *client
	session *session
	number  int
	// start and end are moments; end is 0 while it is under way.
	start, end int
	clock      time.Time
	ctx        context.Context
	cancel     context.CancelFunc
	// dead is set when its process was killed: then its outcome means nothing.
	dead, cancelled bool
	// failed are the places of which a call failed, lied those that were lying
	// when they were called.
	failed, lied places
	// blind are the places of the locations that failed to tell a manifest.
	blind atomic.Uint32
	// sent are the versions that it was the first to send to a location, last is
	// the newest that it sent; with rm, the newest tombstone.
	sent []*version
	last *version

	// before is what there was when it began, if nobody else was at work.
	before *stock

	finished atomic.Bool
	outcome
}

// outcome is what a command returned.
type outcome struct {
	err     error
	object  store.Object
	content []byte
	listed  []store.Object
	report  *repair.Report
	result  gc.Result
	// tombstones is the result of gc --tombstones.
	tombstones gc.TombstoneResult
}

// begin starts a command.
func (c *client) begin(s step) {
	w := c.world
	w.clock = w.clock.Add(time.Second)
	ctx, cancel := context.WithCancel(context.Background())
	cmd := &command{step: s, client: c, number: len(w.model.commands), start: w.tick(), clock: c.now(), ctx: ctx, cancel: cancel}
	c.command = cmd
	cmd.session = c.process(s)
	if w.idle() {
		cmd.before = w.model.takeStock(cmd.option > 0)
	}
	w.model.commands = append(w.model.commands, cmd)
	go func() {
		cmd.err = c.run(ctx, cmd)
		cmd.finished.Store(true)
	}()
}

// now returns what the client's clock shows.
func (c *client) now() time.Time { return c.world.clock.Add(c.options.skew) }

// run does a command.
func (c *client) run(ctx context.Context, cmd *command) (err error) {
	if cmd.session.repo == nil {
		if err = cmd.session.open(ctx, c, !cmd.alone()); err != nil {
			return err
		}
	}
	defer cmd.session.repo.Set.Close(ctx)
	name := objectNames[cmd.step.object]
	s := cmd.session.store
	switch cmd.do {
	case put:
		cmd.outcome.object, err = s.Put(ctx, storetest.Source(name, c.world.fixture.contents[cmd.step.content]), nil)
	case remove:
		err = s.Remove(ctx, name)
	case get:
		var content bytes.Buffer
		cmd.outcome.object, err = s.Get(ctx, name, &content, nil)
		cmd.outcome.content = content.Bytes()
	case stat:
		cmd.outcome.object, err = s.Stat(ctx, name)
	case ls:
		var listing *store.Listing
		listing, err = s.List(ctx, prefixes[cmd.option])
		cmd.listed = slices.Collect(listing.Objects())
	case check, repairs:
		options := repair.Options{Verify: cmd.option > 0, Random: c.random}
		do := repair.Check
		if cmd.do == repairs {
			do = repair.Repair
		}
		cmd.report, err = do(ctx, cmd.session.repo, options)
	case collect:
		cmd.result, err = gc.Run(ctx, cmd.session.repo, cmd.collection())
	case bury:
		cmd.tombstones, err = gc.Tombstones(ctx, cmd.session.repo, cmd.collection())
	}
	return err
}

// collection returns the options of a gc.
func (cmd *command) collection() gc.Options {
	c := cmd.client
	return gc.Options{Grace: graces[cmd.option], DryRun: cmd.dry(), Now: c.now, Random: c.random}
}

// process returns the process that does a step: gc, check and repair run in one of their
// own, as with pcctl; the others may share one, as behind a server.
func (c *client) process(s step) *session {
	if c.session != nil && c.session.repo != nil && !s.fresh && !s.alone() {
		return c.session
	}
	next := &session{}
	for _, l := range c.world.members {
		location, err := l.open(c)
		if err != nil {
			panic(err) // The layouts are possible ones.
		}
		next.locations = append(next.locations, location)
	}
	if !s.alone() {
		c.session = next
	}
	return next
}

// open begins a session: it reads and unlocks the key headers.
func (s *session) open(ctx context.Context, c *client, hedged bool) error {
	set, err := quorum.New(s.locations, c.options.quorum)
	if err != nil {
		return err
	}
	defer set.Close(ctx)
	if hedged {
		set.Hedge()
	}
	headers, err := repository.Read(ctx, set)
	if err != nil {
		return err
	}
	repo, err := headers.Unlock(repository.Secret{Recovery: &c.world.fixture.cluster.Recovery})
	if err != nil {
		return err
	}
	for i, location := range repo.Locations {
		if location.State == repository.HeaderUnreachable || location.State == repository.HeaderForeign {
			s.refused |= c.world.members[i].all
		}
	}
	if c.options.catalog {
		if repo.Catalog, err = catalog.New(filepath.Join(c.world.catalogs, strconv.Itoa(c.index)), repo.Root); err != nil {
			return err
		}
	}
	if c.world.script.guarded {
		repo.Guard = rollback.New(c.world.marks, nil)
	}
	s.store, err = store.New(repo.Set, repo.Root, store.Options{
		Now: c.now, Random: c.random, Workers: 2, Catalog: repo.Catalog, Guard: repo.Guard,
		Warn: func(string) { s.warned.Store(true) },
	})
	s.repo = repo
	return err
}

// unread returns the places that may not have told the command what they hold.
func (cmd *command) unread() places {
	unread := cmd.failed | cmd.lied | cmd.session.refused
	if cmd.client.options.catalog && (cmd.do == ls || cmd.do == collect || cmd.do == bury) {
		unread |= cmd.client.deceived
	}
	return unread
}

// missed returns the places that the command could not reach.
func (cmd *command) missed() places {
	return cmd.failed | cmd.session.refused
}

// blinded returns the places of the locations that could not tell a manifest.
func (cmd *command) blinded() places { return places(cmd.blind.Load()) | cmd.session.refused }

// lockedRandom is a source of numbers that are the same each time.
type lockedRandom struct {
	mu     sync.Mutex
	source io.Reader
}

func newRandom(seed uint64, client int) *lockedRandom {
	return &lockedRandom{source: rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16), byte(client)})}
}

func (r *lockedRandom) Read(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.source.Read(b)
}
