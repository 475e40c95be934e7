package plan

import (
	"strconv"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
)

// Stage is where an image stands in its life.
type Stage string

// The stages; BackingOff shows as the phase Queued, and so does New.
const (
	New          Stage = "New"
	Queued       Stage = "Queued"
	Syncing      Stage = "Syncing"
	BackingOff   Stage = "BackingOff"
	Snapshotting Stage = "Snapshotting"
	Succeeded    Stage = "Succeeded"
	Failed       Stage = "Failed"
)

// StageOf reads the stage off the conditions. An image that failed for want of a snapshot, with its volume kept, is
// still Snapshotting: it succeeds when the snapshot becomes ready after all.
func StageOf(status *v1alpha1.VMDiskImageStatus) Stage {
	synced := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionSynced)
	switch {
	case status.Revision == "" || synced == nil:
		return New
	case synced.Status == "True" && meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionSnapshotReady):
		return Succeeded
	case synced.Status == "True":
		return Snapshotting
	case meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionStalled):
		return Failed
	case synced.Reason == v1alpha1.ReasonSyncing:
		return Syncing
	case status.NextAttemptTime != nil:
		return BackingOff
	}
	return Queued
}

// Waiting says whether the image stands in the queue, and with which ticket: the one in status, or, when it has
// not been seen before, the resourceVersion that will be its ticket.
func Waiting(image *v1alpha1.VMDiskImage) (ticket int64, waits bool) {
	if image.DeletionTimestamp != nil {
		return 0, false
	}
	switch StageOf(&image.Status) {
	case New:
		return ticketOf(image), true
	case Queued:
		return image.Status.Ticket, image.Status.Revision == v1alpha1.RevisionOf(image)
	}
	return 0, false
}

// ticketOf is the ticket of an image that enters the queue now: its resourceVersion, which the API server gives out in
// the order of writes, over all namespaces.
func ticketOf(image *v1alpha1.VMDiskImage) int64 {
	rv, err := strconv.ParseInt(image.ResourceVersion, 10, 64)
	if err != nil {
		return 1 // not a Kubernetes API server: resource versions are decimal numbers since 1.35
	}
	return rv
}
