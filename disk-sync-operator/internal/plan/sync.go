package plan

import (
	"fmt"
	"strconv"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// check looks at a running attempt; the first one that has something to say decides.
type check func(s Snapshot, set Settings, now time.Time) (Decision, bool)

// syncing follows the attempt that runs.
func syncing(s Snapshot, set Settings, now time.Time) Decision {
	for _, c := range []check{slotLost, refused, missing, foreign, leftOver, deleted, failed, filled, overdue} {
		if d, decided := c(s, set, now); decided {
			return d
		}
	}
	return running(s, set, now)
}

// slotLost: somebody deleted or changed the slot's Lease. Without it another image may have been let in.
func slotLost(s Snapshot, set Settings, now time.Time) (Decision, bool) {
	if s.Slot != "" {
		return Decision{}, false
	}
	return fail(s, set, now, v1alpha1.FailureUnknown, "the Lease of its slot was deleted or given to another image"), true
}

// refused: the API server or a webhook does not take the DataVolume.
func refused(s Snapshot, set Settings, now time.Time) (Decision, bool) {
	if s.Refusal == "" {
		return Decision{}, false
	}
	return fail(s, set, now, ReasonOf(s.Refusal), s.Refusal), true
}

// missing: there is no DataVolume, because it was not created yet, or because somebody deleted it.
func missing(s Snapshot, set Settings, now time.Time) (Decision, bool) {
	if s.DataVolume != nil {
		return Decision{}, false
	}
	if s.SeenUID != "" || s.Image.Status.AttemptUID != "" {
		return fail(s, set, now, v1alpha1.FailureUnknown, "its DataVolume was deleted during the import"), true
	}
	if s.Ending {
		return fail(s, set, now, v1alpha1.FailureUnknown, "its slot was being given up before it began"), true
	}
	if d, late := tooLate(s, set, now, "its DataVolume could not be created"); late {
		return d, true
	}
	return Decision{Report: unchanged(s, Syncing), Actions: []Action{CreateDataVolume}}, true
}

// tooLate ends an attempt that could not begin within the attemptTimeout: it keeps a slot from those behind it.
func tooLate(s Snapshot, set Settings, now time.Time, why string) (Decision, bool) {
	if now.Before(started(s).Add(set.Policy.AttemptTimeout)) {
		return Decision{}, false
	}
	message := fmt.Sprintf("not begun within the attemptTimeout of %s: %s", set.Policy.AttemptTimeout, why)
	return fail(s, set, now, v1alpha1.FailureTimedOut, message), true
}

// foreign: the name is taken. What a former image of this name left goes by itself, and its going is an event.
func foreign(s Snapshot, set Settings, now time.Time) (Decision, bool) {
	dv := s.DataVolume
	if owned(s, dv) {
		return Decision{}, false
	}
	if orphan(s, dv) {
		report := unchanged(s, Syncing)
		report.Waits = fmt.Sprintf("the DataVolume %s of a deleted image of the same name must go first", dv.Name)
		if d, late := tooLate(s, set, now, report.Waits); late {
			return d, true
		}
		return Decision{Report: report, WakeAt: started(s).Add(set.Policy.AttemptTimeout)}, true
	}
	message := fmt.Sprintf("a DataVolume %s exists that does not belong to this image: delete or rename it", dv.Name)
	return fail(s, set, now, v1alpha1.FailureUnknown, message), true
}

// leftOver: the DataVolume belongs to another attempt, whose creation came late.
func leftOver(s Snapshot, _ Settings, _ time.Time) (Decision, bool) {
	if s.DataVolume.Annotations[v1alpha1.AnnotationAttempt] == strconv.Itoa(int(s.Image.Status.Attempts)) {
		return Decision{}, false
	}
	d := Decision{Report: unchanged(s, Syncing)}
	if s.DataVolume.DeletionTimestamp == nil {
		d.Actions = []Action{DeleteDataVolume}
	}
	return d, true
}

// deleted: somebody deletes the DataVolume of the running attempt.
func deleted(s Snapshot, set Settings, now time.Time) (Decision, bool) {
	if s.DataVolume.DeletionTimestamp == nil {
		return Decision{}, false
	}
	return fail(s, set, now, v1alpha1.FailureUnknown, "its DataVolume was deleted during the import"), true
}

// failed: CDI or the kubelet says so.
func failed(s Snapshot, set Settings, now time.Time) (Decision, bool) {
	reason, message, isFailure := FailureOf(s.DataVolume, s.Importer)
	if !isFailure {
		return Decision{}, false
	}
	return fail(s, set, now, reason, message), true
}

// filled: the volume holds the disk and is bound. CDI says Succeeded before the claim is bound.
func filled(s Snapshot, _ Settings, _ time.Time) (Decision, bool) {
	if !volumeReady(s) {
		return Decision{}, false
	}
	report := unchanged(s, Snapshotting)
	report.AttemptUID, report.Progress = s.DataVolume.UID, "100.0%"
	d := Decision{Report: report, ReleaseSlot: true}
	if s.VolumeSnapshot == nil {
		d.Actions = []Action{CreateSnapshot}
	}
	return d, true
}

func volumeReady(s Snapshot) bool {
	return s.DataVolume != nil && s.DataVolume.Status.Phase == cdiv1.Succeeded &&
		s.Claim != nil && metav1.IsControlledBy(s.Claim, s.DataVolume) && s.Claim.Status.Phase == corev1.ClaimBound
}

// overdue: a deadline has passed. What CDI or the kubelet waits for is the reason, where that is known.
func overdue(s Snapshot, set Settings, now time.Time) (Decision, bool) {
	end, stall := deadlines(s, set, now)
	wait := WaitOf(s.DataVolume, s.Importer)
	switch {
	case !now.Before(end):
		message := fmt.Sprintf("not done within the attemptTimeout of %s", set.Policy.AttemptTimeout)
		return fail(s, set, now, wait.Or(v1alpha1.FailureTimedOut), wait.With(message)), true
	case !stall.IsZero() && !now.Before(stall):
		message := fmt.Sprintf("no progress for the stallTimeout of %s", set.Policy.StallTimeout)
		return fail(s, set, now, wait.Or(v1alpha1.FailureStalled), wait.With(message)), true
	}
	return Decision{}, false
}

// running has nothing to do but to show progress, or what the attempt has been waiting for for a while, and to come
// back at the next deadline. Waits that pass by themselves within the ProgressInterval are not worth a write.
func running(s Snapshot, set Settings, now time.Time) Decision {
	end, stall := deadlines(s, set, now)
	d := Decision{Report: unchanged(s, Syncing), WakeAt: earliest(end, stall)}
	if wait := WaitOf(s.DataVolume, s.Importer); wait.Message != "" {
		if at := lastSign(s, now).Add(set.ProgressInterval); now.Before(at) {
			d.WakeAt = earliest(d.WakeAt, at)
		} else {
			d.Report.Waits = wait.Message
		}
	}
	if moved(s) {
		if at := progressDue(s, set); now.Before(at) {
			d.WakeAt = earliest(d.WakeAt, at)
		} else {
			d.Report.Progress, d.Report.AttemptUID = string(s.DataVolume.Status.Progress), s.DataVolume.UID
		}
	}
	return d
}

// fail ends the attempt: another one follows after a wait, unless there is none left or it could not help.
func fail(s Snapshot, set Settings, now time.Time, reason v1alpha1.FailureReason, message string) Decision {
	report := unchanged(s, Failed)
	report.Failure = &v1alpha1.Failure{Time: metav1.NewTime(now), Reason: reason, Message: clip(message)}
	if s.DataVolume != nil && owned(s, s.DataVolume) {
		report.AttemptUID = s.DataVolume.UID
	}
	if int(report.Attempt) < set.Policy.MaxAttempts() && !reason.Final() {
		report.Stage = BackingOff
		report.RetryAt = wholeSecond(now.Add(set.Policy.Backoff(int(report.Attempt), string(s.Image.UID))))
	}
	return cleanUp(s, Decision{Report: report, Ended: s.Slot != "", WakeAt: report.RetryAt})
}

// wholeSecond rounds up. A time in status has whole seconds, the rest is cut off, and whoever reads it back would come
// too early.
func wholeSecond(t time.Time) time.Time {
	if whole := t.Truncate(time.Second); whole.Before(t) {
		return whole.Add(time.Second)
	}
	return t
}
