package cdi

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// claimView is what a DataVolume's status is derived from.
type claimView struct {
	name        string
	phase       corev1.PersistentVolumeClaimPhase
	annotations map[string]string
	// importing: the prime claim is bound and the importer pod has a name.
	importing bool
}

// nextStatus derives a DataVolume's status from its last one and its claim; nil means that there is no claim.
func nextStatus(old cdiv1.DataVolumeStatus, claim *claimView, now metav1.Time) cdiv1.DataVolumeStatus {
	next := *old.DeepCopy()
	switch {
	case claim == nil && next.Phase == cdiv1.PhaseUnset:
		next.Phase = cdiv1.Pending
	case claim != nil:
		next.ClaimName = claim.name
		next.Phase = nextPhase(next.Phase, claim)
		if n, err := strconv.ParseInt(claim.annotations[annPodRestarts], 10, 32); err == nil {
			next.RestartCount = int32(n)
		}
		next.Progress = progressUnknown
		if p := claim.annotations[annPopulatorProgress]; p != "" {
			next.Progress = cdiv1.DataVolumeProgress(p)
		}
	}
	c := conditions{list: next.Conditions, now: now}
	c.derive(next.Phase, claim, "", "")
	next.Conditions = c.list
	return next
}

// refusedStatus is the status of a DataVolume whose claim the API server did not take.
func refusedStatus(old cdiv1.DataVolumeStatus, reason, message string, now metav1.Time) cdiv1.DataVolumeStatus {
	next := *old.DeepCopy()
	next.Phase = cdiv1.Pending
	c := conditions{list: next.Conditions, now: now}
	c.derive(next.Phase, nil, reason, message)
	next.Conditions = c.list
	return next
}

// nextPhase follows the importer pod. The phase stays as it is until there is a pod to follow.
func nextPhase(current cdiv1.DataVolumePhase, claim *claimView) cdiv1.DataVolumePhase {
	pod := corev1.PodPhase(claim.annotations[annPodPhase])
	switch {
	case pod == corev1.PodSucceeded:
		return cdiv1.Succeeded // even when the claim is lost afterwards
	case claim.phase == corev1.ClaimLost:
		return cdiv1.Failed
	case !claim.importing:
		return current
	case pod == corev1.PodRunning:
		return cdiv1.ImportInProgress
	case pod == corev1.PodFailed && claim.annotations[annFatalError] == "true":
		return cdiv1.Failed
	default:
		return cdiv1.ImportScheduled // also after a pod has failed for good
	}
}

// conditions changes a list of conditions as CDI does: two steps for Ready, one for the others.
type conditions struct {
	list []cdiv1.DataVolumeCondition
	now  metav1.Time
}

func (c *conditions) derive(phase cdiv1.DataVolumePhase, claim *claimView, reason, message string) {
	c.bound(claim, reason, message)
	ready := corev1.ConditionFalse
	if phase == cdiv1.Succeeded {
		ready = corev1.ConditionTrue
	}
	c.set(cdiv1.DataVolumeReady, ready, reason, message)
	var annotations map[string]string
	if claim != nil {
		annotations = claim.annotations
	}
	c.running(annotations)
}

func (c *conditions) bound(claim *claimView, reason, message string) {
	if claim == nil {
		if message == "" {
			reason, message = reasonNotFound, "No PVC found"
		}
		c.set(cdiv1.DataVolumeBound, corev1.ConditionFalse, reason, message)
		return
	}
	pending, told := claim.annotations[annBoundMessage], claim.annotations[annBound] == "false"
	switch {
	case claim.phase == corev1.ClaimBound:
		c.set(cdiv1.DataVolumeBound, corev1.ConditionTrue, "Bound", fmt.Sprintf("PVC %s Bound", claim.name))
	case claim.phase == corev1.ClaimLost:
		c.set(cdiv1.DataVolumeBound, corev1.ConditionFalse, reasonClaimLost, "Claim Lost")
	case told:
		prime := fmt.Sprintf("[%s] : ", claim.annotations[annPrimeName])
		c.set(cdiv1.DataVolumeBound, corev1.ConditionFalse, claim.annotations[annBoundReason], fmt.Sprintf("target PVC %s Pending and %s%s", claim.name, prime, pending))
	default:
		c.set(cdiv1.DataVolumeBound, corev1.ConditionFalse, "Pending", fmt.Sprintf("PVC %s Pending", claim.name))
	}
}

func (c *conditions) running(annotations map[string]string) {
	reason, message := annotations[annRunningReason], annotations[annRunningMessage]
	switch {
	case annotations[annPodSchedulable] == "false":
		c.set(cdiv1.DataVolumeRunning, corev1.ConditionFalse, reasonUnschedulable, "Importer pod cannot be scheduled")
	case annotations[annRunning] == "true":
		c.set(cdiv1.DataVolumeRunning, corev1.ConditionTrue, reason, message)
		c.set(cdiv1.DataVolumeReady, corev1.ConditionFalse, reasonTransfer, "")
	default:
		c.set(cdiv1.DataVolumeRunning, corev1.ConditionFalse, reason, message)
	}
}

func (c *conditions) set(kind cdiv1.DataVolumeConditionType, status corev1.ConditionStatus, reason, message string) {
	var condition *cdiv1.DataVolumeCondition
	for i := range c.list {
		if c.list[i].Type == kind {
			condition = &c.list[i]
		}
	}
	if condition == nil {
		c.list = append(c.list, cdiv1.DataVolumeCondition{Type: kind})
		condition = &c.list[len(c.list)-1]
	}
	if condition.Status != status {
		condition.LastTransitionTime, condition.LastHeartbeatTime = c.now, c.now
	} else if condition.Reason != reason || condition.Message != message {
		condition.LastHeartbeatTime = c.now
	}
	condition.Status, condition.Reason, condition.Message = status, reason, message
}
