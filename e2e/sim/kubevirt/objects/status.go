package objects

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	virtv1 "kubevirt.io/api/core/v1"
)

// Status of a VirtualMachine, as it follows from what there is and from the status that it has. Conditions of an instance
// that is gone stay.
func Status(s Seen, now metav1.Time) virtv1.VirtualMachineStatus {
	next := *s.VM.Status.DeepCopy()
	next.PrintableStatus = Printable(s)
	next.Created = s.VMI != nil && !s.VMI.IsFinal()
	next.Ready = next.Created && s.hasCondition(virtv1.VirtualMachineInstanceReady, corev1.ConditionTrue, "")
	next.DesiredGeneration, next.RunStrategy = s.VM.Generation, Strategy(s.VM)
	next.Conditions = setMachine(next.Conditions, ready(s, now))
	if s.Failure == "" {
		next.Conditions = dropMachine(next.Conditions, virtv1.VirtualMachineFailure)
	} else {
		next.Conditions = setMachine(next.Conditions, virtv1.VirtualMachineCondition{
			Type: virtv1.VirtualMachineFailure, Status: corev1.ConditionTrue, Reason: ReasonFailedCreate, Message: s.Failure, LastTransitionTime: now,
		})
	}
	if s.VMI == nil {
		return next
	}
	if generation, err := strconv.ParseInt(s.VMI.Annotations[AnnGeneration], 10, 64); err == nil {
		next.ObservedGeneration = generation
	}
	next.Conditions = fromInstance(next.Conditions, s.VMI)
	if message := RestartRequired(s.VM, s.VMI); message != "" {
		next.Conditions = setMachine(next.Conditions, virtv1.VirtualMachineCondition{
			Type: virtv1.VirtualMachineRestartRequired, Status: corev1.ConditionTrue, Message: message, LastTransitionTime: now,
		})
	} else if !s.VMI.IsFinal() && s.VMI.DeletionTimestamp == nil {
		next.Conditions = dropMachine(next.Conditions, virtv1.VirtualMachineRestartRequired)
	}
	return next
}

func ready(s Seen, now metav1.Time) virtv1.VirtualMachineCondition {
	c := virtv1.VirtualMachineCondition{Type: virtv1.VirtualMachineReady, Status: corev1.ConditionFalse, LastTransitionTime: now}
	if s.VMI == nil {
		c.Reason, c.Message = ReasonNoInstance, "VMI does not exist"
		return c
	}
	for _, of := range s.VMI.Status.Conditions {
		if of.Type == virtv1.VirtualMachineInstanceReady {
			c.Status, c.Reason, c.Message = of.Status, of.Reason, of.Message
			return c
		}
	}
	c.Reason, c.Message = ReasonConditionMissing, "VMI is missing the Ready condition"
	return c
}

// fromInstance takes over the instance's conditions, and drops those that it has no longer.
func fromInstance(list []virtv1.VirtualMachineCondition, vmi *virtv1.VirtualMachineInstance) []virtv1.VirtualMachineCondition {
	own := []virtv1.VirtualMachineConditionType{virtv1.VirtualMachineReady, virtv1.VirtualMachineFailure, virtv1.VirtualMachineRestartRequired}
	kinds := slices.Clone(own)
	for _, of := range vmi.Status.Conditions {
		kind := virtv1.VirtualMachineConditionType(of.Type)
		if slices.Contains(own, kind) {
			continue
		}
		kinds = append(kinds, kind)
		list = setMachine(list, virtv1.VirtualMachineCondition{
			Type: kind, Status: of.Status, Reason: of.Reason, Message: of.Message, LastTransitionTime: of.LastTransitionTime,
		})
	}
	return slices.DeleteFunc(list, func(c virtv1.VirtualMachineCondition) bool { return !slices.Contains(kinds, c.Type) })
}
