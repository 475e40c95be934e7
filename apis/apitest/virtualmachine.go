package apitest

import (
	"slices"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// VirtualMachineMod changes a VirtualMachine that is being built.
type VirtualMachineMod func(*v1alpha1.VirtualMachine)

// VirtualMachine is a new VirtualMachine as the API server would hold it: generation 1, UID "uid-" and its name, with the
// image ubuntu of its own namespace, on the pod network, to be kept running.
func VirtualMachine(name string, mods ...VirtualMachineMod) *v1alpha1.VirtualMachine {
	podNetwork := true
	vm := &v1alpha1.VirtualMachine{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "VirtualMachine"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: Namespace, UID: types.UID("uid-" + name), Generation: 1, ResourceVersion: "100",
		},
		Spec: v1alpha1.VirtualMachineSpec{
			MachineSpec:    v1alpha1.MachineSpec{PodNetwork: &podNetwork, RunStrategy: v1alpha1.RunAlways},
			VMDiskImageRef: v1alpha1.VMDiskImageReference{Name: "ubuntu"},
		},
	}
	for _, mod := range mods {
		mod(vm)
	}
	return vm
}

// Uses sets the image; no namespace is that of the virtual machine.
func Uses(namespace, name string) VirtualMachineMod {
	return func(v *v1alpha1.VirtualMachine) {
		v.Spec.VMDiskImageRef = v1alpha1.VMDiskImageReference{Namespace: namespace, Name: name}
	}
}

// TemplateOf sets the template that would make an image such as that one.
func TemplateOf(image *v1alpha1.VMDiskImage) VirtualMachineMod {
	return func(v *v1alpha1.VirtualMachine) { v.Spec.VMDiskImageTemplate = image.Spec.DeepCopy() }
}

// MachineSpec changes the spec by hand.
func MachineSpec(change func(*v1alpha1.VirtualMachineSpec)) VirtualMachineMod {
	return func(v *v1alpha1.VirtualMachine) { change(&v.Spec) }
}

// MachineStatus changes the status by hand.
func MachineStatus(change func(*v1alpha1.VirtualMachineStatus)) VirtualMachineMod {
	return func(v *v1alpha1.VirtualMachine) { change(&v.Status) }
}

// MachineCondition sets a condition, and the phase that follows from all of them.
func MachineCondition(kind string, status metav1.ConditionStatus, reason v1alpha1.VirtualMachineReason, since metav1.Time) VirtualMachineMod {
	return func(v *v1alpha1.VirtualMachine) {
		c := metav1.Condition{
			Type: kind, Status: status, Reason: string(reason), LastTransitionTime: since, ObservedGeneration: v.Generation,
		}
		v.Status.Conditions = slices.DeleteFunc(v.Status.Conditions, func(o metav1.Condition) bool { return o.Type == kind })
		v.Status.Conditions = append(v.Status.Conditions, c)
		v.Status.Phase = v1alpha1.VirtualMachinePhaseOf(v.Status.Conditions)
	}
}

// MachineIn puts the virtual machine into the namespace.
func MachineIn(namespace string) VirtualMachineMod {
	return func(v *v1alpha1.VirtualMachine) { v.Namespace = namespace }
}

// MachineUID sets the UID: another one under the same name.
func MachineUID(uid types.UID) VirtualMachineMod {
	return func(v *v1alpha1.VirtualMachine) { v.UID = uid }
}

// MachineDeleted sets a deletionTimestamp.
func MachineDeleted(at metav1.Time) VirtualMachineMod {
	return func(v *v1alpha1.VirtualMachine) { v.DeletionTimestamp = &at }
}
