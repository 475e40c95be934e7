package objects

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// View is what a DataVolume's status is derived from.
type View struct {
	// Name of the claim.
	Name string
	// Phase of the claim.
	Phase corev1.PersistentVolumeClaimPhase
	// Annotations of the claim; never nil.
	Annotations map[string]string
	// Importing: the prime claim is bound and the importer pod has a name.
	Importing bool
}

// Set changes annotations: key, value, key, value ...
func (v *View) Set(pairs ...string) {
	for i := 0; i+1 < len(pairs); i += 2 {
		v.Annotations[pairs[i]] = pairs[i+1]
	}
}

// SetBoundMessage sets what CDI takes from the events of the prime claim.
func (v *View) SetBoundMessage(message string) {
	v.Set(AnnBound, "false", AnnBoundReason, "Pending", AnnBoundMessage, message)
}

// SetRunning sets the condition Running.
func (v *View) SetRunning(running, reason, message string) {
	v.Set(AnnRunning, running, AnnRunningReason, reason, AnnRunningMessage, message)
}

// NextStatus derives a DataVolume's status from its last one and its claim; nil means that there is no claim.
func NextStatus(old cdiv1.DataVolumeStatus, claim *View, now metav1.Time) cdiv1.DataVolumeStatus {
	next := *old.DeepCopy()
	switch {
	case claim == nil && next.Phase == cdiv1.PhaseUnset:
		next.Phase = cdiv1.Pending
	case claim != nil:
		next.ClaimName = claim.Name
		next.Phase = nextPhase(next.Phase, claim)
		if n, err := strconv.ParseInt(claim.Annotations[AnnPodRestarts], 10, 32); err == nil {
			next.RestartCount = int32(n)
		}
		next.Progress = ProgressUnknown
		if p := claim.Annotations[AnnPopulatorProgress]; p != "" {
			next.Progress = cdiv1.DataVolumeProgress(p)
		}
	}
	c := conditions{list: next.Conditions, now: now}
	c.derive(next.Phase, claim, "", "")
	next.Conditions = c.list
	return next
}

// RefusedStatus is the status of a DataVolume whose claim the API server did not take.
func RefusedStatus(old cdiv1.DataVolumeStatus, reason, message string, now metav1.Time) cdiv1.DataVolumeStatus {
	next := *old.DeepCopy()
	next.Phase = cdiv1.Pending
	c := conditions{list: next.Conditions, now: now}
	c.derive(next.Phase, nil, reason, message)
	next.Conditions = c.list
	return next
}

// nextPhase follows the importer pod. The phase stays as it is until there is a pod to follow.
func nextPhase(current cdiv1.DataVolumePhase, claim *View) cdiv1.DataVolumePhase {
	pod := corev1.PodPhase(claim.Annotations[AnnPodPhase])
	switch {
	case pod == corev1.PodSucceeded:
		return cdiv1.Succeeded // even when the claim is lost afterwards
	case claim.Phase == corev1.ClaimLost:
		return cdiv1.Failed
	case !claim.Importing:
		return current
	case pod == corev1.PodRunning:
		return cdiv1.ImportInProgress
	case pod == corev1.PodFailed && claim.Annotations[AnnFatalError] == "true":
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

func (c *conditions) derive(phase cdiv1.DataVolumePhase, claim *View, reason, message string) {
	c.bound(claim, reason, message)
	ready := corev1.ConditionFalse
	if phase == cdiv1.Succeeded {
		ready = corev1.ConditionTrue
	}
	c.set(cdiv1.DataVolumeReady, ready, reason, message)
	var annotations map[string]string
	if claim != nil {
		annotations = claim.Annotations
	}
	c.running(annotations)
}

func (c *conditions) bound(claim *View, reason, message string) {
	if claim == nil {
		if message == "" {
			reason, message = ReasonNotFound, "No PVC found"
		}
		c.set(cdiv1.DataVolumeBound, corev1.ConditionFalse, reason, message)
		return
	}
	pending, told := claim.Annotations[AnnBoundMessage], claim.Annotations[AnnBound] == "false"
	switch {
	case claim.Phase == corev1.ClaimBound:
		c.set(cdiv1.DataVolumeBound, corev1.ConditionTrue, "Bound", fmt.Sprintf("PVC %s Bound", claim.Name))
	case claim.Phase == corev1.ClaimLost:
		c.set(cdiv1.DataVolumeBound, corev1.ConditionFalse, ReasonClaimLost, "Claim Lost")
	case told:
		prime := fmt.Sprintf("[%s] : ", claim.Annotations[AnnPrimeName])
		c.set(cdiv1.DataVolumeBound, corev1.ConditionFalse, claim.Annotations[AnnBoundReason], fmt.Sprintf("target PVC %s Pending and %s%s", claim.Name, prime, pending))
	default:
		c.set(cdiv1.DataVolumeBound, corev1.ConditionFalse, "Pending", fmt.Sprintf("PVC %s Pending", claim.Name))
	}
}

func (c *conditions) running(annotations map[string]string) {
	reason, message := annotations[AnnRunningReason], annotations[AnnRunningMessage]
	switch {
	case annotations[AnnPodSchedulable] == "false":
		c.set(cdiv1.DataVolumeRunning, corev1.ConditionFalse, ReasonUnschedulable, "Importer pod cannot be scheduled")
	case annotations[AnnRunning] == "true":
		c.set(cdiv1.DataVolumeRunning, corev1.ConditionTrue, reason, message)
		c.set(cdiv1.DataVolumeReady, corev1.ConditionFalse, ReasonTransfer, "")
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
