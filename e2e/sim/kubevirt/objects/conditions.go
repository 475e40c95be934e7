package objects

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	virtv1 "kubevirt.io/api/core/v1"
)

// Is is a condition of an instance that holds.
func Is(kind virtv1.VirtualMachineInstanceConditionType, now metav1.Time) virtv1.VirtualMachineInstanceCondition {
	return virtv1.VirtualMachineInstanceCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now}
}

// IsNot is a condition that does not hold.
func IsNot(kind virtv1.VirtualMachineInstanceConditionType, reason, message string, now metav1.Time) virtv1.VirtualMachineInstanceCondition {
	return virtv1.VirtualMachineInstanceCondition{Type: kind, Status: corev1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: now}
}

// SetCondition sets a condition of an instance, keeping its time as long as the status is the same.
func SetCondition(vmi *virtv1.VirtualMachineInstance, next virtv1.VirtualMachineInstanceCondition) {
	for i, old := range vmi.Status.Conditions {
		if old.Type != next.Type {
			continue
		}
		if old.Status == next.Status {
			next.LastTransitionTime = old.LastTransitionTime
		}
		vmi.Status.Conditions[i] = next
		return
	}
	vmi.Status.Conditions = append(vmi.Status.Conditions, next)
}

// DropCondition removes a condition of an instance.
func DropCondition(vmi *virtv1.VirtualMachineInstance, kind virtv1.VirtualMachineInstanceConditionType) {
	vmi.Status.Conditions = slices.DeleteFunc(vmi.Status.Conditions, func(c virtv1.VirtualMachineInstanceCondition) bool { return c.Type == kind })
}

// SetNotReady sets the condition Ready of an instance to False.
func SetNotReady(vmi *virtv1.VirtualMachineInstance, reason, message string, now metav1.Time) {
	SetCondition(vmi, IsNot(virtv1.VirtualMachineInstanceReady, reason, message, now))
}

// SetPhase enters a phase.
func SetPhase(vmi *virtv1.VirtualMachineInstance, phase virtv1.VirtualMachineInstancePhase, now metav1.Time) {
	vmi.Status.Phase = phase
	vmi.Status.PhaseTransitionTimestamps = append(vmi.Status.PhaseTransitionTimestamps, virtv1.VirtualMachineInstancePhaseTransitionTimestamp{
		Phase: phase, PhaseTransitionTimestamp: now,
	})
}

// setMachine sets a condition of a VirtualMachine, keeping its time as long as the status is the same.
func setMachine(list []virtv1.VirtualMachineCondition, next virtv1.VirtualMachineCondition) []virtv1.VirtualMachineCondition {
	for i, old := range list {
		if old.Type != next.Type {
			continue
		}
		if old.Status == next.Status {
			next.LastTransitionTime = old.LastTransitionTime
		}
		list[i] = next
		return list
	}
	return append(list, next)
}

func dropMachine(list []virtv1.VirtualMachineCondition, kind virtv1.VirtualMachineConditionType) []virtv1.VirtualMachineCondition {
	return slices.DeleteFunc(list, func(c virtv1.VirtualMachineCondition) bool { return c.Type == kind })
}
