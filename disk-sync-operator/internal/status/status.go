// Package status puts a decision into words: a pure function from the image and the plan's report to the whole status.
package status

import (
	"fmt"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/plan"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Of is the status that the report asks for. What it does not mention is kept; transition times move only with the
// condition's status.
func Of(image *v1alpha1.VMDiskImage, report plan.Report, maxAttempts int, now metav1.Time) v1alpha1.VMDiskImageStatus {
	st := *image.Status.DeepCopy()
	entering := report.Revision != st.Revision
	if entering {
		forget(&st)
	}
	st.Revision = report.Revision
	st.ObservedGeneration = image.Generation
	if report.Ticket != 0 {
		st.Ticket, st.QueuedAt, st.NextAttemptTime = report.Ticket, &now, nil
	}
	st.Attempts, st.AttemptUID = report.Attempt, report.AttemptUID
	follow(&st, report, now)
	lose(&st, report)
	if report.Artifact != nil {
		st.Artifact, st.CompletedAt = report.Artifact, new(report.Artifact.CompletedAt)
	}
	ended(&st, report, now)
	readmitted(&st, report)
	expires(&st, report)
	if plan.StageOf(&image.Status) != report.Stage || changes(report) {
		st.Message = message(&st, report, maxAttempts)
	}
	for _, c := range conditions(image, &st, report) {
		setCondition(&st.Conditions, c, now)
	}
	reconciling(&st, report, image.Generation, now)
	st.Phase = v1alpha1.PhaseOf(st.Conditions)
	return st
}

// changes says that the report has something new to say, within the same stage too. Otherwise the words stay: they
// hold what was true when they were written (a position, a limit), and are not rewritten while others come and go.
func changes(report plan.Report) bool {
	running := report.Stage == plan.Syncing || report.Stage == plan.Snapshotting
	return (running && !report.Quiet) || report.Stage == plan.Succeeded || report.Deletion != "" || report.Waits != "" || report.Ticket != 0 || report.Starts || report.Failure != nil
}

// forget drops what belongs to a former revision; the artifact and the references stay.
func forget(st *v1alpha1.VMDiskImageStatus) {
	st.Ticket, st.QueuedAt, st.StartedAt, st.CompletedAt, st.NextAttemptTime = 0, nil, nil, nil, nil
	st.LastFailure, st.Progress, st.ProgressAt = nil, "", nil
}

// follow takes in the beginning of an attempt, and its progress.
func follow(st *v1alpha1.VMDiskImageStatus, report plan.Report, now metav1.Time) {
	if report.Starts {
		st.StartedAt, st.Progress, st.ProgressAt, st.NextAttemptTime = &now, plan.NotAvailable, nil, nil
	}
	if report.Progress != "" && report.Progress != st.Progress {
		st.Progress, st.ProgressAt = report.Progress, &now
	}
}

// lose takes in what was lost.
func lose(st *v1alpha1.VMDiskImageStatus, report plan.Report) {
	if report.Loss != nil {
		st.LastLoss = report.Loss
	}
	if report.Resync {
		st.Losses++
	}
	if report.Unready {
		st.Artifact = nil
	}
}

// ended takes in the failure of an attempt, and the end of the image's attempts.
func ended(st *v1alpha1.VMDiskImageStatus, report plan.Report, now metav1.Time) {
	switch {
	case report.Failure == nil:
		if report.Stage == plan.Failed && st.CompletedAt == nil { // no attempt is left, because the policy changed
			st.NextAttemptTime, st.CompletedAt = nil, &now
		}
	case report.RetryAt.IsZero():
		st.LastFailure, st.NextAttemptTime, st.CompletedAt = report.Failure, nil, &now
	default:
		st.LastFailure, st.NextAttemptTime = report.Failure, &metav1.Time{Time: report.RetryAt}
	}
}

// expires says when the image is pruned; only one that has succeeded is.
func expires(st *v1alpha1.VMDiskImageStatus, report plan.Report) {
	st.ExpiresAt = nil
	if report.Stage == plan.Succeeded && !report.ExpiresAt.IsZero() {
		st.ExpiresAt = &metav1.Time{Time: report.ExpiresAt}
	}
}

// message is for people: what is going on, what it waits for, what to change.
func message(st *v1alpha1.VMDiskImageStatus, report plan.Report, maxAttempts int) string {
	if report.Deletion != "" {
		return report.Deletion
	}
	switch report.Stage {
	case plan.Queued:
		return queuedMessage(st, report, maxAttempts)
	case plan.Syncing:
		return with(fmt.Sprintf("Attempt %d of %d is under way", report.Attempt, maxAttempts), report.Waits)
	case plan.BackingOff:
		if report.Waits != "" {
			return attemptFailed(st, maxAttempts) + "; " + report.Waits
		}
		return fmt.Sprintf("%s; the next one starts after %s, in its turn", attemptFailed(st, maxAttempts), st.NextAttemptTime.UTC().Format("2006-01-02T15:04:05Z"))
	case plan.Snapshotting:
		return snapshotMessage(st, report)
	case plan.Succeeded:
		return readyMessage(report)
	case plan.Failed:
		if sourceRefused(st) {
			return sourceRefusedMessage(st)
		}
		return fmt.Sprintf("%s. Change the spec, or set the annotation %s to a new value, to try again",
			attemptFailed(st, maxAttempts), v1alpha1.AnnotationSyncRequestedAt)
	}
	return st.Message
}

func snapshotMessage(st *v1alpha1.VMDiskImageStatus, report plan.Report) string {
	overdue := meta.IsStatusConditionTrue(st.Conditions, v1alpha1.ConditionStalled)
	if st.LastFailure != nil && (overdue || report.Failure != nil) {
		return st.LastFailure.Message
	}
	return with("The volume is complete; waiting for its snapshot", report.Waits)
}

// readyMessage says why something is still there that would be gone otherwise: what was replaced, or the image itself.
func readyMessage(report plan.Report) string {
	const ready = "The snapshot is ready to be cloned"
	switch {
	case report.Held != "":
		return fmt.Sprintf("%s; what it replaces stays until the DataVolume %s has been cloned from it", ready, report.Held)
	case report.WouldPrune:
		return fmt.Sprintf("%s, and nothing uses it: %s %s", ready, wouldPrune, report.ExpiresAt.UTC().Format("2006-01-02T15:04:05Z"))
	}
	return ready
}

// wouldPrune is in the message of an image that only a dry run keeps: that it was told is told by it, in the same write.
const wouldPrune = "without the dry run it would have been pruned at"

// queuedMessage names the position at the time of queueing.
func queuedMessage(st *v1alpha1.VMDiskImageStatus, report plan.Report, maxAttempts int) string {
	text := fmt.Sprintf("Waiting for a slot; %d were ahead when it was queued", report.Ahead)
	if st.LastFailure != nil {
		text += ". " + attemptFailed(st, maxAttempts)
	}
	return text
}

func attemptFailed(st *v1alpha1.VMDiskImageStatus, maxAttempts int) string {
	if st.LastFailure == nil {
		return "The image failed"
	}
	return with(fmt.Sprintf("Attempt %d of %d failed: %s", st.Attempts, maxAttempts, st.LastFailure.Reason), st.LastFailure.Message)
}

func with(text, detail string) string {
	if detail == "" {
		return text
	}
	return text + ": " + detail
}
