package ec

import (
	"context"
	"errors"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/pace"
)

// plan says how many parts a read asks and when it has enough answers.
type plan struct {
	// agree is how many parts must have one version.
	agree int
	// answers is how many must have answered, so that any other version which
	// can be put together would have been noticed.
	answers int
	// patient has parts waited for that don't answer, however long it takes.
	patient bool
	// take, unless it is nil, is offered what was gathered before any shard is
	// compared with its sum, once, and reports whether the reader takes the version.
	take func(*tally, *version) bool
}

// planFor returns the plan of a read that may end early.
func (l *Location) planFor(kind blob.Kind) plan {
	if kind == blob.KindChunk {
		// It has one version, and its reader can tell.
		return plan{agree: l.data, answers: l.data}
	}
	return plan{agree: l.agreement(), answers: max(l.agreement(), l.total-l.data+1)}
}

// everything is the plan of a read that asks all parts.
func (l *Location) everything() plan { return plan{agree: l.total + 1, answers: l.total} }

// partLimit returns what a part may have, in bytes, of a blob of at most limit.
func (l *Location) partLimit(limit int64) int64 {
	limit = min(max(limit, 0), maxSize)
	return maxRecords * (int64(l.headerSize()) + l.shardSize(limit) + modulus)
}

// reply is an answer on its way.
type reply struct {
	part   int
	answer answer
	memory []byte
	took   time.Duration
}

// reading is a read of a blob's shards under way.
type reading struct {
	l       *Location
	t       *tally
	plan    plan
	limit   int64
	order   []int
	asked   int
	waiting map[int]bool
	replies chan reply
	memory  [][]byte
	// taken says that the plan's take has taken a version.
	taken bool
	// waited says that parts were waited for as long as they usually take, and more.
	waited bool
}

// gather asks parts for what they hold of a blob, those of the plan at first and
// more when that isn't enough, or takes long. release is called when the records
// aren't needed any more. The error is ctx's.
func (l *Location) gather(ctx context.Context, name blob.Name, limit int64, p plan) (t *tally, release func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	r := &reading{
		l: l, t: newTally(l.layout, name, l.parts), plan: p, limit: limit,
		order: l.pace.Order(), waiting: map[int]bool{}, replies: make(chan reply, l.total),
	}
	defer r.abandon(cancel)
	r.ask(ctx, max(p.agree, p.answers))
	timer := time.NewTimer(l.pace.Patience(r.waiting, r.size()))
	defer timer.Stop()
	for len(r.waiting) > 0 && !r.settled() && !r.dispensable() {
		select {
		case got := <-r.replies:
			r.take(got)
			if r.settled() {
				continue // Else one part more would be asked, in vain.
			}
			r.ask(ctx, r.lacking())
			timer.Reset(l.pace.Patience(r.waiting, r.size()))
		case <-timer.C:
			r.waited = true
			l.pace.Late(r.waiting)
			r.ask(ctx, 1)
			timer.Reset(l.pace.Patience(r.waiting, r.size()))
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	return r.t, r.release, nil
}

// dispensable reports whether only parts are missing that are known to be late, and
// the read can do without them. They count as unreachable then.
func (r *reading) dispensable() bool {
	if r.plan.patient {
		return false
	}
	var late []int
	for _, part := range r.order {
		if r.t.answers[part].state != notAsked {
			continue
		}
		if !r.l.pace.IsLate(part) {
			return false
		}
		late = append(late, part)
	}
	// So few answers may have missed a version that was acknowledged: a part that was
	// late before gets another chance.
	if !r.t.isChunk() && r.t.definite() < r.l.total-r.l.data && !r.waited {
		return false
	}
	best := r.t.best()
	if best == nil || r.t.doubt(best) != nil {
		return false
	}
	for _, part := range late {
		r.t.answers[part] = answer{state: unreachable, err: r.l.pace.Why(part)}
	}
	return true
}

// ask asks up to n more parts.
func (r *reading) ask(ctx context.Context, n int) {
	for ; n > 0 && r.asked < len(r.order); n-- {
		part := r.order[r.asked]
		r.asked++
		r.waiting[part] = true
		go func() {
			start := time.Now()
			a, memory := r.askOne(ctx, part)
			r.replies <- reply{part, a, memory, time.Since(start)}
		}()
	}
}

// askOne asks one part. One that took long to fail just now isn't waited for again
// by those who wait for all.
func (r *reading) askOne(ctx context.Context, part int) (a answer, memory []byte) {
	if !r.plan.patient {
		return r.l.ask(ctx, part, r.t.name, r.limit)
	}
	err := r.l.writing.Try(ctx, part, func() error {
		a, memory = r.l.ask(ctx, part, r.t.name, r.limit)
		if a.state == unreachable {
			return a.err
		}
		return nil
	})
	if err != nil {
		a = answer{state: unreachable, err: err}
	}
	return a, memory
}

// size tells shards of chunks that may be large from other blobs, which rarely are.
func (r *reading) size() pace.Size {
	return pace.Size(r.t.isChunk()) && pace.SizeOf(r.l.shardSize(min(r.limit, maxSize)))
}

// take enters an answer.
func (r *reading) take(got reply) {
	delete(r.waiting, got.part)
	var failure error
	if got.answer.state == unreachable {
		failure = got.answer.err
	}
	r.l.pace.Answered(got.part, r.size(), got.took, failure)
	r.t.add(got.part, got.answer)
	if got.memory != nil {
		r.memory = append(r.memory, got.memory)
	}
}

// abandon ends what is still being asked for. Parts may take their time to notice.
func (r *reading) abandon(cancel context.CancelFunc) {
	if len(r.waiting) == 0 {
		cancel()
		return
	}
	r.l.background.Abandon(cancel, func() {
		for range len(r.waiting) {
			<-r.replies
		}
	})
}

// release gives the memory of the records back.
func (r *reading) release() {
	for _, memory := range r.memory {
		r.l.shards.Give(memory)
	}
	r.memory = nil
}

// settled reports whether the plan is fulfilled: enough parts answered, enough of
// them have the newest version that any has, and it is taken or their shards are
// intact. It is when all were asked.
func (r *reading) settled() bool {
	if r.taken || r.asked == len(r.order) && len(r.waiting) == 0 {
		return true
	}
	v := r.t.newest()
	if v == nil || v.count < r.plan.agree || r.t.definite() < r.plan.answers {
		return false
	}
	if take := r.plan.take; take != nil {
		r.plan.take = nil
		if r.taken = take(r.t, v); r.taken {
			return true
		}
	}
	r.t.check(v)
	return v.count >= r.plan.agree
}

// lacking returns how many more parts to ask.
func (r *reading) lacking() int {
	have := 0
	if v := r.t.newest(); v != nil {
		have = v.count
	}
	lacking := max(r.plan.agree-have, r.plan.answers-r.t.definite()) - len(r.waiting)
	if len(r.waiting) == 0 {
		lacking = max(lacking, 1)
	}
	return lacking
}

// ask asks one part what it holds. memory is what the answer is in, if it came from
// the pool.
func (l *Location) ask(ctx context.Context, part int, name blob.Name, limit int64) (a answer, memory []byte) {
	var buf []byte
	if name.Kind == blob.KindChunk && limit <= wholeBlob {
		memory = l.shards.Take(int(int64(l.headerSize()) + l.shardSize(limit) + modulus))
		buf = memory
	}
	data, err := l.parts[part].Get(ctx, name, buf, l.partLimit(limit))
	return l.answerOf(name, data, err), memory
}

// answerOf returns what a part says that answers a Get like this.
func (l *Location) answerOf(name blob.Name, data []byte, err error) answer {
	switch {
	case errors.Is(err, blob.ErrNotFound):
		return answer{state: absent}
	case errors.Is(err, blob.ErrTooLarge):
		return answer{state: tooLarge}
	case errors.Is(err, blob.ErrDamaged):
		return answer{state: unusable, err: err}
	case err != nil:
		return answer{state: unreachable, err: err}
	}
	records, err := parseRecords(data, name, l.layout)
	if len(records) == 0 {
		return answer{state: unusable, err: err, length: len(data)}
	}
	return answer{state: holding, damaged: err != nil, err: err, records: records, length: len(data)}
}
