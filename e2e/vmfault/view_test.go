package vmfault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/pelotech/open-terrain/e2e/fault/lab"
	"github.com/pelotech/open-terrain/e2e/history"
	"github.com/pelotech/open-terrain/e2e/invariant"
)

// settled is how long nothing may change before a story counts as over.
const settled = 200 * time.Millisecond

// view is what a plan looks at: the history of its namespaces, and of the cluster's objects, from its begin on.
type view struct {
	after     int64
	namespace string
}

func (v *view) events(w *lab.World) []history.Event {
	all := w.Recorder.All()
	start := sort.Search(len(all), func(i int) bool { return all[i].Revision > v.after })
	var seen []history.Event
	for _, e := range all[start:] {
		if v.concerns(w, e) {
			seen = append(seen, e)
		}
	}
	return seen
}

func (v *view) concerns(w *lab.World, e history.Event) bool {
	switch namespace := invariant.NamespaceOf(e); namespace {
	case v.namespace, v.namespace + farm, w.Settings.Namespace:
		return true
	case "":
		return e.Resource != "namespaces" || e.Name == v.namespace || e.Name == v.namespace+farm
	}
	return false
}

// settle returns when the story has come to its end, and nothing has changed for a moment.
func (v *view) settle(ctx context.Context, w *lab.World, story Story, pause time.Duration) error {
	time.Sleep(pause)
	for {
		// What the caller has just written may not be recorded yet.
		if _, err := w.Recorder.Sync(ctx); err != nil {
			return err
		}
		unsettled := v.unsettled(w, story)
		if unsettled == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not settled: %s: %w", unsettled, ctx.Err())
		case <-time.After(25 * time.Millisecond):
		}
	}
}

func (v *view) unsettled(w *lab.World, story Story) string {
	events := v.events(w)
	for _, e := range slices.Backward(events) {
		if time.Since(e.Seen) > settled {
			break
		}
		if busy := invariant.Quiet(w.Settings, []history.Event{e}); len(busy) > 0 {
			return invariant.Line(e)
		}
	}
	if wrong := story.differs(events); wrong != "" {
		return wrong
	}
	for _, check := range []invariant.Check{invariant.NoLoss, invariant.Underway, invariant.References, invariant.MachinesAtEnd} {
		if left := check(w.Settings, events); len(left) > 0 {
			return left[0].Text
		}
	}
	return ""
}

// check runs all checks of a history.
func (v *view) check(w *lab.World) error {
	events := v.events(w)
	return broken(events, slices.Concat(invariant.Machines(w.Settings, events), invariant.NoSecrets(canary)(w.Settings, events)))
}

func (v *view) handsOff(events []history.Event, writes []invariant.Write, s invariant.Settings) error {
	own := slices.DeleteFunc(slices.Clone(writes), func(write invariant.Write) bool {
		return write.Namespace != v.namespace && write.Namespace != v.namespace+farm
	})
	return broken(events, invariant.MachineHandsOff(s, events, own))
}

// quiet demands that nothing happened between two revisions.
func (v *view) quiet(w *lab.World, from, to int64) error {
	window := slices.DeleteFunc(v.events(w), func(e history.Event) bool { return e.Revision <= from || e.Revision > to })
	return broken(window, invariant.Quiet(w.Settings, window))
}

// awaitNothing returns when nothing is left of a plan's virtual machines and images, which have been deleted.
func (v *view) awaitNothing(ctx context.Context, w *lab.World) error {
	for {
		if _, err := w.Recorder.Sync(ctx); err != nil {
			return err
		}
		events := v.events(w)
		left := broken(events, invariant.NoOrphans(w.Settings, events))
		if left == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(left, ctx.Err())
		case <-time.After(25 * time.Millisecond):
		}
	}
}

// broken tells of violations, and of the history before the first one.
func broken(events []history.Event, violations []invariant.Violation) error {
	if len(violations) == 0 {
		return nil
	}
	sort.SliceStable(violations, func(i, j int) bool { return violations[i].Event.Revision < violations[j].Event.Revision })
	var text strings.Builder
	for _, v := range violations[:min(len(violations), 10)] {
		fmt.Fprintln(&text, v)
	}
	return fmt.Errorf("%d violations:\n%s%s", len(violations), text.String(), invariant.Excerpt(events, violations[0], 60))
}
