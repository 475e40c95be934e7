package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Phase is the one-word summary of a VMDiskImage. It is a pure function of the conditions and is never
// read back by an operator.
//
//	Queued -> Syncing -> Snapshotting -> Succeeded
//	   ^         |            |
//	   +---------+------------+--> Failed
//	 (a failed attempt that will be retried)
//
// +kubebuilder:validation:Enum=Queued;Syncing;Snapshotting;Succeeded;Failed
type Phase string

const (
	// PhaseQueued waits for a slot, or for the time of the next attempt.
	PhaseQueued Phase = "Queued"
	// PhaseSyncing holds a slot and downloads.
	PhaseSyncing Phase = "Syncing"
	// PhaseSnapshotting has the volume and waits for the snapshot.
	PhaseSnapshotting Phase = "Snapshotting"
	// PhaseSucceeded has a snapshot that is ready to use.
	PhaseSucceeded Phase = "Succeeded"
	// PhaseFailed needs a changed spec or the annotation pelotech.ot/sync-requested-at.
	PhaseFailed Phase = "Failed"
)

// PhaseOf derives the phase from the conditions: total, and without memory.
func PhaseOf(conditions []metav1.Condition) Phase {
	switch {
	case meta.IsStatusConditionTrue(conditions, ConditionStalled):
		return PhaseFailed
	case meta.IsStatusConditionTrue(conditions, ConditionSynced):
		if meta.IsStatusConditionTrue(conditions, ConditionSnapshotReady) {
			return PhaseSucceeded
		}
		return PhaseSnapshotting
	}
	if synced := meta.FindStatusCondition(conditions, ConditionSynced); synced != nil && synced.Reason == ReasonSyncing {
		return PhaseSyncing
	}
	return PhaseQueued
}
