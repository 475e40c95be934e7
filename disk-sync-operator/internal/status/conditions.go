package status

import (
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/plan"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// conditions are all four, for any report: a reader never has to guess what a missing one means.
func conditions(image *v1alpha1.VMDiskImage, st *v1alpha1.VMDiskImageStatus, report plan.Report) []metav1.Condition {
	stalled := stalledCondition(image, st, report)
	return []metav1.Condition{
		readyCondition(st, report, stalled),
		syncedCondition(st, report),
		snapshotCondition(st, report),
		stalled,
	}
}

// readyCondition is about the artifact: an image that is being updated stays Ready with the one it has.
func readyCondition(st *v1alpha1.VMDiskImageStatus, report plan.Report, stalled metav1.Condition) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Message: st.Message}
	switch {
	case st.Artifact != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.ReasonSnapshotReady, "The snapshot "+st.Artifact.Snapshot+" can be cloned"
	case stalled.Status == metav1.ConditionTrue:
		c.Reason = stalled.Reason
	default:
		c.Reason = reasonOf(report.Stage)
	}
	return c
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

func setCondition(conditions *[]metav1.Condition, c metav1.Condition, generation int64, now metav1.Time) {
	c.ObservedGeneration, c.LastTransitionTime = generation, now
	meta.SetStatusCondition(conditions, c)
}
