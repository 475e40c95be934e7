package objects

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	virtv1 "kubevirt.io/api/core/v1"
)

// Printable is KubeVirt's one word for the state of a VirtualMachine: the first that holds.
func Printable(s Seen) virtv1.VirtualMachinePrintableStatus {
	if s.VM.Status.PrintableStatus == "" {
		return virtv1.VirtualMachineStatusStopped // always first, whatever there is
	}
	for _, state := range []struct {
		name  virtv1.VirtualMachinePrintableStatus
		holds bool
	}{
		{virtv1.VirtualMachineStatusTerminating, s.VM.DeletionTimestamp != nil},
		{virtv1.VirtualMachineStatusStopping, s.VMI != nil && !s.VMI.IsFinal() && s.VMI.DeletionTimestamp != nil},
		{virtv1.VirtualMachineStatusPaused, s.runs() && s.hasCondition(virtv1.VirtualMachineInstancePaused, corev1.ConditionTrue, "")},
		{virtv1.VirtualMachineStatusRunning, s.runs()},
		{virtv1.VirtualMachineStatusPvcNotFound, s.hasCondition(virtv1.VirtualMachineInstanceSynchronized, corev1.ConditionFalse, ReasonPVCNotFound)},
		{virtv1.VirtualMachineStatusDataVolumeError, !s.halted() && slices.ContainsFunc(s.Disks, Disk.failing)},
		{virtv1.VirtualMachineStatusUnschedulable, s.hasCondition(podScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable)},
		{virtv1.VirtualMachineStatusProvisioning, slices.ContainsFunc(s.Disks, Disk.provisioning)},
		{virtv1.VirtualMachineStatusWaitingForVolumeBinding, !s.halted() && slices.ContainsFunc(s.Disks, Disk.unbound)},
		{virtv1.VirtualMachineStatusStarting, s.VMI != nil && !s.VMI.IsFinal()},
		{virtv1.VirtualMachineStatusCrashLoopBackOff, s.crashes()},
		{virtv1.VirtualMachineStatusStopped, true},
	} {
		if state.holds {
			return state.name
		}
	}
	return virtv1.VirtualMachineStatusUnknown
}

const podScheduled = virtv1.VirtualMachineInstanceConditionType(corev1.PodScheduled)

func (s Seen) runs() bool { return s.VMI != nil && s.VMI.Status.Phase == virtv1.Running }

func (s Seen) halted() bool { return Strategy(s.VM) == virtv1.RunStrategyHalted }

func (s Seen) hasCondition(kind virtv1.VirtualMachineInstanceConditionType, status corev1.ConditionStatus, reason string) bool {
	if s.VMI == nil {
		return false
	}
	return slices.ContainsFunc(s.VMI.Status.Conditions, func(c virtv1.VirtualMachineInstanceCondition) bool {
		return c.Type == kind && c.Status == status && (reason == "" || c.Reason == reason)
	})
}

// crashes is true between two tries to start a guest.
func (s Seen) crashes() bool {
	automatic := []virtv1.VirtualMachineRunStrategy{virtv1.RunStrategyAlways, virtv1.RunStrategyRerunOnFailure, virtv1.RunStrategyOnce}
	failure := s.VM.Status.StartFailure
	return failure != nil && failure.ConsecutiveFailCount > 0 && slices.Contains(automatic, Strategy(s.VM))
}

// Strategy is the runStrategy, or the older field that says the same.
func Strategy(vm *virtv1.VirtualMachine) virtv1.VirtualMachineRunStrategy {
	switch {
	case vm.Spec.RunStrategy != nil:
		return *vm.Spec.RunStrategy
	case vm.Spec.Running != nil && *vm.Spec.Running:
		return virtv1.RunStrategyAlways
	}
	return virtv1.RunStrategyHalted
}
