package model

import (
	"fmt"
	"slices"
	"time"

	"powercloud.unidatum.com/go/store"
	"powercloud.unidatum.com/go/store/repair"
)

// conclude ends every fault and every command, and checks that one repair puts
// everything right that can be: nothing that was promised is missing, gc finds
// nothing that it may not, and what is really lost can be put again.
func (w *world) conclude() error {
	for _, p := range w.places {
		p.misbehave(sound, 0)
	}
	for _, c := range w.clients {
		if err := w.finish(c); err != nil {
			return fmt.Errorf("finishing: %w", err)
		}
	}
	// Marks of collections that were cut short lapse.
	w.clock = w.clock.Add(2 * time.Hour)
	var latest time.Duration
	for _, options := range w.script.clients {
		latest = max(latest, options.skew)
	}
	c := w.newClient(clientOptions{skew: latest})
	if !w.model.opened(&command{client: c, session: &session{}}) {
		return nil // Not even a key header is left.
	}
	run := func(s step) error {
		s.client = c.index
		w.log(" - %s", s)
		if err := w.do(s); err != nil {
			return fmt.Errorf("in the end, %s: %w", s, err)
		}
		if w.model.failure != nil {
			return fmt.Errorf("in the end, %s: %w", s, w.model.failure)
		}
		return nil
	}
	if err := run(step{do: repairs, option: 1}); err != nil {
		return err
	}
	report := c.command.report
	if err := run(step{do: bury}); err != nil {
		return err
	}
	for i, o := range w.model.objects {
		if damaged(report, o) || w.model.rolledBack(o, w.model.newest(o)) {
			if err := run(step{do: put, object: i, content: 1}); err != nil {
				return err
			}
		}
	}
	steps := []step{{do: repairs, option: 1}, {do: check, option: 1}}
	for range 3 {
		steps = append(steps, step{do: collect})
	}
	steps = append(steps, step{do: check, option: 1}, step{do: ls})
	for i := range objectNames {
		steps = append(steps, step{do: get, object: i})
	}
	for _, s := range steps {
		if err := run(s); err != nil {
			return err
		}
		if err := w.checkConclusion(c.command); err != nil {
			return fmt.Errorf("in the end, %s: %w", s, err)
		}
	}
	return nil
}

// damaged reports whether a report says that an object is damaged.
func damaged(report *repair.Report, o *object) bool {
	return report != nil && slices.ContainsFunc(report.Damaged, func(name string) bool {
		return name == o.name || name == o.blob.String()+" (the object's name can't be read)"
	})
}

// checkConclusion checks a command that runs when all is well again.
func (w *world) checkConclusion(cmd *command) error {
	switch {
	case cmd.do == get:
		if newest := w.model.newest(w.model.objects[cmd.step.object]); (cmd.err == nil) != (newest != nil && !newest.deleted) {
			return fmt.Errorf("with %s stored: %w", newest, cmd.err)
		}
	case cmd.err != nil:
		return cmd.err
	case cmd.do == check:
		if err := cmd.report.Err(); err != nil {
			return err
		}
		if slices.ContainsFunc(w.model.commands, func(e *command) bool { return e.do == collect && e.client == cmd.client }) && cmd.report.Unreferenced > 0 {
			return fmt.Errorf("%d chunks are still unreferenced", cmd.report.Unreferenced)
		}
	case cmd.do == ls:
		for _, o := range w.model.objects {
			newest := w.model.newest(o)
			listed := slices.ContainsFunc(cmd.listed, func(row store.Object) bool { return row.Name == o.name })
			if listed != (newest != nil && !newest.deleted) {
				return fmt.Errorf("with %s stored, listed is %t", newest, listed)
			}
		}
	}
	return nil
}
