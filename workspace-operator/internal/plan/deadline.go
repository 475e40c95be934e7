package plan

import (
	"slices"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LookAgain is when to look again for what sends no event: a name that somebody else has, the end of a refusal, or of a webhook.
const LookAgain = 30 * time.Second

// judge says whether the workspace is Failed, and when that may change without an event. The first time that it is Ready or
// Failed ends its time among those that are provisioned.
func judge(s Snapshot, set Settings, d *Decision, now time.Time) {
	r := &d.Report
	r.Deadline, r.TroubledSince = deadline(s, *r, now), troubled(s, *r, now)
	var lasted time.Time // when the trouble has
	if r.TroubledSince != nil {
		lasted = r.TroubledSince.Add(set.TroubleDebounce)
	}
	r.Stalled = stalled(*r, lasted, now)
	if r.ProvisionedAt == nil && (r.Ready || r.Stalled != nil) {
		r.ProvisionedAt = &metav1.Time{Time: now}
	}
	d.WakeAt = earliest(after(now, lasted), after(now, timeOf(r.Deadline)))
	if blind(s, *r) {
		d.WakeAt = earliest(d.WakeAt, now.Add(LookAgain))
	}
}

func troubled(s Snapshot, r Report, now time.Time) *metav1.Time {
	switch {
	case r.Ready || r.Blocking.Weight != Troubled:
		return nil
	case s.Workspace.Status.TroubledSince != nil:
		return s.Workspace.Status.TroubledSince
	}
	return wholeSecond(now)
}

func stalled(r Report, lasted, now time.Time) *Verdict {
	switch {
	case r.Ready:
		return nil
	case r.Blocking.Weight == Final, !lasted.IsZero() && !now.Before(lasted):
		return &r.Blocking
	case r.Deadline != nil && !now.Before(r.Deadline.Time):
		return new(bad(Final, v1alpha1.WorkspaceProvisioningTimedOut, "Not ready by %s: %s", r.Deadline.UTC().Format(time.RFC3339), r.Blocking.Message))
	}
	return nil
}

// deadline runs from the moment that nothing with a deadline of its own is waited for: not while images are queued or synced.
// It begins anew when that is over, and when the spec changes.
func deadline(s Snapshot, r Report, now time.Time) *metav1.Time {
	st := s.Workspace.Status
	switch {
	case r.Ready, r.Blocking.Weight == Patient, s.Workspace.Timeout() <= 0:
		return nil
	case st.Deadline != nil && st.ObservedGeneration == s.Workspace.Generation:
		return st.Deadline
	}
	return wholeSecond(now.Add(s.Workspace.Timeout()))
}

// wholeSecond is the next one: status holds whole seconds, and a time that is cut there comes up to a second too early.
func wholeSecond(t time.Time) *metav1.Time {
	if cut := t.Truncate(time.Second); !cut.Equal(t) {
		t = cut.Add(time.Second)
	}
	return &metav1.Time{Time: t}
}

// blind says that what is waited for sends no event.
func blind(s Snapshot, r Report) bool {
	silent := []v1alpha1.WorkspaceReason{
		v1alpha1.WorkspaceNameTaken, v1alpha1.WorkspaceNamespaceTaken, v1alpha1.WorkspaceNamespaceMissing, v1alpha1.WorkspaceRejected,
	}
	return len(s.Refusals) > 0 || slices.Contains(silent, r.Namespace.Reason) || slices.Contains(silent, r.Isolated.Reason) ||
		slices.ContainsFunc(slices.Concat(r.VirtualMachines, r.Containers), func(m Member) bool { return slices.Contains(silent, m.Reason) })
}

// after is the time if it is yet to come.
func after(now, t time.Time) time.Time {
	if t.After(now) {
		return t
	}
	return time.Time{}
}

func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}
