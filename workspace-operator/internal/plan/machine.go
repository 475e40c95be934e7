package plan

import (
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const aMachine = "virtual machine"

// machinesStep keeps a VirtualMachine for each entry, as the entry wants it, and the Service that gives it a name.
func machinesStep(v view, before step) step {
	var all step
	for i := range v.Workspace.Spec.VirtualMachines {
		entry := &v.Workspace.Spec.VirtualMachines[i]
		child := v.child(VirtualMachine, entry.Name)
		one := v.named(before, entry.Name, machineStep(v, entry, child), child)
		all.actions = append(all.actions, one.actions...)
		all.members = append(all.members, machineMember(v.Snapshot, entry.Name, child, one.Verdict))
	}
	all.Verdict = worstOf(aMachine, all.members)
	return all
}

func machineStep(v view, entry *v1alpha1.WorkspaceVirtualMachine, child Child) step {
	vm := v.VirtualMachines[child.Name]
	if _, refusedIt := v.Refusals[child]; refusedIt || vm == nil || !owned(v.Snapshot, vm) || !otherImage(vm, entry, v.set) {
		return v.keep(child, func() Verdict { return machineVerdict(vm) })
	}
	to := entry.Image(v.set.Desired.ImageNamespace)
	st := step{Verdict: bad(Waits, v1alpha1.WorkspaceReplacing, "It is made anew, with a new disk: its image was %s, and is to be %s/%s",
		vm.ImageKey(), to.Namespace, to.Name)}
	if vm.DeletionTimestamp == nil {
		st.actions = []Action{{Delete, child}}
	}
	return st
}

// otherImage says that the entry wants another image than the machine was made with. An image namespace of the operator that
// is another one than it was makes no machine anew: its disk would be lost for a flag.
func otherImage(vm *v1alpha1.VirtualMachine, entry *v1alpha1.WorkspaceVirtualMachine, set Settings) bool {
	want, is := entry.Image(set.Desired.ImageNamespace), vm.ImageKey()
	return want.Name != is.Name || saysNamespace(entry) && want.Namespace != is.Namespace
}

func saysNamespace(entry *v1alpha1.WorkspaceVirtualMachine) bool {
	return entry.Spec.VMDiskImageRef != nil && entry.Spec.VMDiskImageRef.Namespace != ""
}

// machineVerdict believes the VirtualMachine of its newest generation only.
func machineVerdict(vm *v1alpha1.VirtualMachine) Verdict {
	ready := meta.FindStatusCondition(vm.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case ready == nil:
		return bad(Waits, v1alpha1.WorkspaceVirtualMachinePending, beingMade, "It")
	case vm.Status.ObservedGeneration != vm.Generation || ready.ObservedGeneration != vm.Generation:
		return bad(Waits, v1alpha1.WorkspaceVirtualMachinePending, beingChanged, "It")
	case meta.IsStatusConditionTrue(vm.Status.Conditions, v1alpha1.ConditionStalled):
		return bad(Final, v1alpha1.WorkspaceVirtualMachineFailed, "%s", said(vm))
	case ready.Status == metav1.ConditionTrue:
		return good(v1alpha1.WorkspaceMembersReady, "%s", said(vm))
	}
	switch v1alpha1.VirtualMachineReason(ready.Reason) {
	case v1alpha1.ReasonImageNotReady: // it is in a queue, or is being synced: that has deadlines of its own
		return bad(Patient, v1alpha1.WorkspaceImagePending, "%s", said(vm))
	case v1alpha1.ReasonImageMissing, v1alpha1.ReasonImageNotAllowed, v1alpha1.ReasonImageClaiming:
		return bad(Waits, v1alpha1.WorkspaceImagePending, "%s", said(vm))
	case v1alpha1.ReasonPaused:
		return bad(Patient, v1alpha1.WorkspaceVirtualMachinePending, "%s", said(vm))
	}
	return bad(Waits, v1alpha1.WorkspaceVirtualMachinePending, "%s", said(vm))
}

// said is the message of the VirtualMachine.
func said(vm *v1alpha1.VirtualMachine) string {
	if vm.Status.Message == "" {
		return "It does not say what it waits for"
	}
	return vm.Status.Message
}

func machineMember(s Snapshot, name string, child Child, verdict Verdict) Member {
	m := Member{Name: name, Verdict: verdict, Phase: v1alpha1.VirtualMachineProvisioning}
	switch {
	case verdict.Good:
		m.Phase = v1alpha1.VirtualMachineReady
	case verdict.Weight == Final:
		m.Phase = v1alpha1.VirtualMachineFailed
	}
	if vm := s.VirtualMachines[child.Name]; vm != nil && owned(s, vm) && vm.Status.Image != nil {
		m.ImagePhase = vm.Status.Image.Phase
	}
	return m
}
