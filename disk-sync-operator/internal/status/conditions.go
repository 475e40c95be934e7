package status

import (
	"fmt"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/plan"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// conditions are all four, for any report: a reader never has to guess what a missing one means.
func conditions(image *v1alpha1.VMDiskImage, st *v1alpha1.VMDiskImageStatus, report plan.Report) []metav1.Condition {
	stalled := stalledCondition(image, st, report)
	all := []metav1.Condition{
		readyCondition(st, report, stalled),
		syncedCondition(st, report),
		snapshotCondition(st, report),
		stalled,
	}
	for i := range all {
		all[i].ObservedGeneration = image.Generation
	}
	if former := meta.FindStatusCondition(image.Status.Conditions, v1alpha1.ConditionReady); former != nil && outdated(st) {
		all[0].ObservedGeneration = former.ObservedGeneration // it is not about what the spec asks for now
	}
	return all
}

// outdated says that the artifact is not of the revision that the spec asks for.
func outdated(st *v1alpha1.VMDiskImageStatus) bool {
	return st.Artifact != nil && st.Artifact.Revision != st.Revision
}

// readyCondition is about the artifact: an image that is being updated stays Ready with the one it has.
func readyCondition(st *v1alpha1.VMDiskImageStatus, report plan.Report, stalled metav1.Condition) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Message: st.Message}
	switch {
	case st.Artifact != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.ReasonSnapshotReady, "The snapshot "+st.Artifact.Snapshot+" can be cloned"
		return c
	case stalled.Status == metav1.ConditionTrue:
		c.Reason = stalled.Reason
	case st.LastLoss != nil:
		c.Reason = v1alpha1.ReasonArtifactLost
	default:
		c.Reason = reasonOf(report.Stage)
	}
	if st.LastLoss != nil {
		c.Message = fmt.Sprintf("%s %s was lost, as was noticed at %s. %s",
			st.LastLoss.Kind, st.LastLoss.Name, st.LastLoss.Time.UTC().Format(time.RFC3339), st.Message)
	}
	return c
}

// reconciling is there only while an image that is Ready is on its way to another artifact.
func reconciling(st *v1alpha1.VMDiskImageStatus, report plan.Report, generation int64, now metav1.Time) {
	if !outdated(st) || report.Stage == plan.Failed {
		meta.RemoveStatusCondition(&st.Conditions, v1alpha1.ConditionReconciling)
		return
	}
	setCondition(&st.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReconciling, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonUpdating, Message: st.Message,
		ObservedGeneration: generation,
	}, now)
}

func syncedCondition(st *v1alpha1.VMDiskImageStatus, report plan.Report) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionSynced, Status: metav1.ConditionFalse, Message: st.Message}
	switch report.Stage {
	case plan.Snapshotting, plan.Succeeded:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.ReasonSynced, "The volume holds the disk and is bound"
	case plan.Failed:
		c.Reason = string(lastReason(st))
	default:
		c.Reason = reasonOf(report.Stage)
	}
	return c
}

func snapshotCondition(st *v1alpha1.VMDiskImageStatus, report plan.Report) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionSnapshotReady, Status: metav1.ConditionFalse}
	switch report.Stage {
	case plan.Succeeded:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.ReasonSnapshotReady, "The snapshot is ready to use and bound"
	case plan.Snapshotting:
		c.Reason, c.Message = v1alpha1.ReasonSnapshotting, st.Message
	default:
		c.Reason, c.Message = v1alpha1.ReasonNotSynced, "There is no complete volume to take a snapshot of"
	}
	return c
}

// stalledCondition is True for a failed image, and for one whose snapshot is overdue until it is there.
func stalledCondition(image *v1alpha1.VMDiskImage, st *v1alpha1.VMDiskImageStatus, report plan.Report) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonProgressing}
	was := meta.IsStatusConditionTrue(image.Status.Conditions, v1alpha1.ConditionStalled) && image.Status.Revision == report.Revision
	overdue := report.Stage == plan.Snapshotting && (report.Failure != nil || was)
	if report.Stage == plan.Failed || overdue {
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, string(lastReason(st)), st.Message
	}
	return c
}

func lastReason(st *v1alpha1.VMDiskImageStatus) v1alpha1.FailureReason {
	if st.LastFailure == nil {
		return v1alpha1.FailureUnknown
	}
	return st.LastFailure.Reason
}

func reasonOf(stage plan.Stage) string {
	switch stage {
	case plan.Syncing:
		return v1alpha1.ReasonSyncing
	case plan.BackingOff:
		return v1alpha1.ReasonBackingOff
	case plan.Snapshotting:
		return v1alpha1.ReasonSnapshotting
	case plan.Succeeded:
		return v1alpha1.ReasonSynced
	}
	return v1alpha1.ReasonQueued
}

func setCondition(conditions *[]metav1.Condition, c metav1.Condition, now metav1.Time) {
	c.LastTransitionTime = now
	meta.SetStatusCondition(conditions, c)
}
