package plan

import (
	"slices"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LookAgain is when to look again for what sends no event: a Secret with a password, a name that somebody else has, the end of
// a quota or of another refusal.
const LookAgain = 30 * time.Second

// judge says whether the VM is Failed, and when that may change without an event.
func judge(s Snapshot, set Settings, d *Decision, now time.Time) {
	r := &d.Report
	r.Deadline = deadline(s, *r, now)
	var last time.Time // when the trouble has lasted
	if !r.Ready && r.Blocking.Weight == Troubled {
		r.TroubledSince = s.VM.Status.TroubledSince
		if r.TroubledSince == nil {
			r.TroubledSince = wholeSecond(now)
		}
		last = r.TroubledSince.Add(set.TroubleDebounce)
	}
	switch {
	case r.Ready:
	case r.Blocking.Weight == Final, !last.IsZero() && !now.Before(last):
		r.Stalled = &r.Blocking
	case r.Deadline != nil && !now.Before(r.Deadline.Time):
		late := bad(Final, v1alpha1.ReasonProvisioningTimeout, "Not ready by %s: %s", r.Deadline.UTC().Format(time.RFC3339), r.Blocking.Message)
		r.Stalled = &late
	}
	d.WakeAt = earliest(after(now, last), after(now, timeOf(r.Deadline)))
	if blind(s, *r) {
		d.WakeAt = earliest(d.WakeAt, now.Add(LookAgain))
	}
}

// deadline runs from the moment that nothing with a deadline of its own is waited for: not while the image is queued or
// synced. It begins anew when the image becomes ready, and when the spec changes.
func deadline(s Snapshot, r Report, now time.Time) *metav1.Time {
	st := s.VM.Status
	switch {
	case r.Ready, r.Blocking.Weight == Patient, s.VM.Timeout() <= 0:
		return nil
	case st.Deadline != nil && st.ObservedGeneration == s.VM.Generation && !becameReady(s.VM, r.Image):
		return st.Deadline
	}
	return wholeSecond(now.Add(s.VM.Timeout()))
}

// wholeSecond is the next one: status holds whole seconds, and a time that is cut there comes up to a second too early.
func wholeSecond(t time.Time) *metav1.Time {
	if cut := t.Truncate(time.Second); !cut.Equal(t) {
		t = cut.Add(time.Second)
	}
	return &metav1.Time{Time: t}
}

func becameReady(vm *v1alpha1.VirtualMachine, image Verdict) bool {
	return image.Good && meta.IsStatusConditionFalse(vm.Status.Conditions, v1alpha1.ConditionImageReady)
}

// blind says that what is waited for sends no event.
func blind(s Snapshot, r Report) bool {
	silent := []v1alpha1.VirtualMachineReason{v1alpha1.ReasonSecretMissing, v1alpha1.ReasonNameTaken}
	return len(s.Refusals) > 0 || slices.ContainsFunc([]Verdict{r.Disk, r.Machine}, func(v Verdict) bool {
		return !v.Good && slices.Contains(silent, v.Reason)
	})
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
