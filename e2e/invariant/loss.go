package invariant

import (
	"time"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/history"
	coordinationv1 "k8s.io/api/coordination/v1"
)

// NoLoss is the first half of I3, of a history that has come to its end.
func NoLoss(s Settings, events []history.Event) []Violation {
	f := &found{invariant: "I3"}
	st := replay(s, events, func(*state, history.Event) {})
	for _, image := range st.images {
		if phase := image.Status.Phase; phase != otv1alpha1.PhaseSucceeded && phase != otv1alpha1.PhaseFailed {
			f.add(last(events), "%s/%s is %q at the end: %s", image.Namespace, image.Name, phase, image.Status.Message)
		}
	}
	for slot, holder := range st.slots {
		f.add(last(events), "%s is held by %s at the end", slot, holder)
	}
	for _, dv := range st.unfinished("") {
		f.add(last(events), "the DataVolume %s/%s is %q at the end", dv.Namespace, dv.Name, dv.Status.Phase)
	}
	return f.list
}

// Starvation is the other half of I3: no slot is free beside an image that waits for longer than Settings.Idle.
func Starvation(s Settings, events []history.Event) []Violation {
	f := &found{invariant: "I3"}
	if s.Idle == 0 {
		return nil
	}
	var since time.Time // zero: no slot is free, or nobody waits
	replay(s, events, func(st *state, e history.Event) {
		if idle := e.Seen.Sub(since); !since.IsZero() && idle > s.Idle {
			f.add(e, "before it, a slot was free and an image waited for %s", idle.Round(time.Millisecond))
		}
		_, isLease := latest(e).(*coordinationv1.Lease)
		switch {
		case len(st.slots) >= st.policies[len(st.policies)-1].Concurrency || !st.someoneWaits():
			since = time.Time{}
		case since.IsZero() || isLease:
			since = e.Seen
		}
	})
	return f.list
}

func (st *state) someoneWaits() bool {
	for _, image := range st.images {
		if _, waiting := waits(image); waiting && !st.holds(image) {
			return true
		}
	}
	return false
}

func last(events []history.Event) history.Event {
	if len(events) == 0 {
		return history.Event{}
	}
	return events[len(events)-1]
}
