package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/history"
	"github.com/pelotech/open-terrain/e2e/invariant"
)

// view is what a plan looks at: the history of its namespace, the operator's and the cluster's objects from its begin on, and
// the policy that was in force then. What other plans left in their namespaces is none of its business.
type view struct {
	after     int64
	namespace string
	policy    []history.Event
}

func (w *World) view(after int64, namespace string) *view {
	v := &view{after: after, namespace: namespace}
	events := w.Recorder.All()
	end := indexAfter(events, after)
	for _, e := range slices.Backward(events[w.policyAt:end]) {
		if e.Resource == "configmaps" && e.Name == otv1alpha1.PolicyConfigMapName {
			w.policy = []history.Event{e}
			break
		}
	}
	w.policyAt, v.policy = end, w.policy
	return v
}

// indexAfter is the place of the first event after a revision.
func indexAfter(events []history.Event, revision int64) int {
	return sort.Search(len(events), func(i int) bool { return events[i].Revision > revision })
}

func (v *view) events(w *World) []history.Event {
	all := w.Recorder.All()
	seen := slices.Clone(v.policy)
	for _, e := range all[indexAfter(all, v.after):] {
		if v.concerns(w, e) {
			seen = append(seen, e)
		}
	}
	return seen
}

func (v *view) concerns(w *World, e history.Event) bool {
	switch e.Namespace {
	case v.namespace, w.Settings.Namespace:
		return true
	case "":
		return e.Resource != "volumesnapshotcontents" || invariant.NamespaceOf(e) == v.namespace
	}
	return false
}

// settle returns when every image has come to its end, no slot is held, and nothing has changed for a moment.
func (v *view) settle(ctx context.Context, w *World) error {
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		// What the caller has just written may not be recorded yet.
		if _, err := w.Recorder.Sync(ctx); err != nil {
			return err
		}
		unsettled := unsettled(w.Settings, v.events(w))
		if unsettled == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not settled: %s: %w", unsettled, ctx.Err())
		case <-tick.C:
		}
	}
}

// settleAfter lets the consequences of a fault come first.
func (v *view) settleAfter(ctx context.Context, w *World, linger time.Duration) error {
	select {
	case <-ctx.Done():
	case <-time.After(max(linger/4, 25*time.Millisecond)):
	}
	return v.settle(ctx, w)
}

func unsettled(s invariant.Settings, events []history.Event) string {
	for _, e := range slices.Backward(events) {
		if time.Since(e.Seen) > settled {
			break
		}
		if busy := invariant.Quiet(s, []history.Event{e}); len(busy) > 0 {
			return invariant.Line(e)
		}
	}
	for _, check := range []invariant.Check{invariant.NoLoss, invariant.Underway} {
		if left := check(s, events); len(left) > 0 {
			return left[0].Text
		}
	}
	return ""
}

// check runs all checks of a history.
func (v *view) check(w *World) error {
	events := v.events(w)
	return broken(events, invariant.All(w.Settings, events))
}

func (v *view) handsOff(w *World, writes []invariant.Write) error {
	events := v.events(w)
	own := slices.DeleteFunc(slices.Clone(writes), func(write invariant.Write) bool {
		return write.Namespace != v.namespace && write.Namespace != w.Settings.Namespace
	})
	return broken(events, invariant.HandsOff(w.Settings, events, own))
}

// quietAfter demands that nothing happened between a revision and the deletion of the first image.
func (v *view) quietAfter(w *World, settled int64) error {
	var window []history.Event
	for _, e := range v.events(w) {
		if e.Revision <= settled {
			continue
		}
		if e.Prev != nil && (e.Resource == "vmdiskimages" || e.Resource == "datasyncs") {
			break // its deletion, or that nobody uses it any more, which comes before
		}
		window = append(window, e)
	}
	return broken(window, invariant.Quiet(w.Settings, window))
}

// awaitNothing returns when nothing is left of the images of a plan, which have been deleted.
func (v *view) awaitNothing(ctx context.Context, w *World) error {
	var left error
	for {
		if _, err := w.Recorder.Sync(ctx); err != nil {
			return errors.Join(left, err)
		}
		events := v.events(w)
		left = broken(events, invariant.NoOrphans(w.Settings, events))
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
	return fmt.Errorf("%d violations:\n%s%s", len(violations), text.String(), invariant.Excerpt(events, violations[0], excerpt))
}
