package apitest

import (
	"slices"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// WorkspaceMod changes a Workspace that is being built.
type WorkspaceMod func(*v1alpha1.Workspace)

// Workspace is a new Workspace as the API server would hold it: generation 1, UID "uid-" and its name, isolated, with a
// namespace of its own and no members.
func Workspace(name string, mods ...WorkspaceMod) *v1alpha1.Workspace {
	isolate, dns := true, true
	w := &v1alpha1.Workspace{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Workspace"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID("uid-" + name), Generation: 1, ResourceVersion: "100",
		},
		Spec: v1alpha1.WorkspaceSpec{Network: &v1alpha1.WorkspaceNetwork{Isolate: &isolate, AllowDNS: &dns}},
	}
	for _, mod := range mods {
		mod(w)
	}
	return w
}

// Member adds a virtual machine with that image of the image namespace; no image leaves it to the changes.
func Member(name, image string, changes ...func(*v1alpha1.WorkspaceVirtualMachineSpec)) WorkspaceMod {
	return func(w *v1alpha1.Workspace) {
		podNetwork := true
		spec := v1alpha1.WorkspaceVirtualMachineSpec{
			MachineSpec:     v1alpha1.MachineSpec{PodNetwork: &podNetwork, RunStrategy: v1alpha1.RunAlways},
			VMDiskImageName: image,
		}
		for _, change := range changes {
			change(&spec)
		}
		w.Spec.VirtualMachines = append(w.Spec.VirtualMachines, v1alpha1.WorkspaceVirtualMachine{Name: name, Spec: spec})
	}
}

// Runs adds a container of that image with one replica.
func Runs(name, image string, changes ...func(*v1alpha1.WorkspaceContainer)) WorkspaceMod {
	return func(w *v1alpha1.Workspace) {
		replicas := int32(1)
		container := v1alpha1.WorkspaceContainer{Name: name, Image: image, Replicas: &replicas}
		for _, change := range changes {
			change(&container)
		}
		w.Spec.Containers = append(w.Spec.Containers, container)
	}
}

// Listens adds TCP ports to a container.
func Listens(ports ...int32) func(*v1alpha1.WorkspaceContainer) {
	return func(c *v1alpha1.WorkspaceContainer) {
		for _, port := range ports {
			c.Ports = append(c.Ports, v1alpha1.WorkspacePort{ContainerPort: port, Protocol: corev1.ProtocolTCP})
		}
	}
}

// Targets puts the children into a namespace that is not the workspace's own.
func Targets(namespace string) WorkspaceMod {
	return func(w *v1alpha1.Workspace) { w.Spec.TargetNamespace = namespace }
}

// WorkspaceSpec changes the spec by hand.
func WorkspaceSpec(change func(*v1alpha1.WorkspaceSpec)) WorkspaceMod {
	return func(w *v1alpha1.Workspace) { change(&w.Spec) }
}

// WorkspaceStatus changes the status by hand.
func WorkspaceStatus(change func(*v1alpha1.WorkspaceStatus)) WorkspaceMod {
	return func(w *v1alpha1.Workspace) { change(&w.Status) }
}

// WorkspaceCondition sets a condition, and the phase that follows from all of them.
func WorkspaceCondition(kind string, status metav1.ConditionStatus, reason v1alpha1.WorkspaceReason, since metav1.Time) WorkspaceMod {
	return func(w *v1alpha1.Workspace) {
		c := metav1.Condition{
			Type: kind, Status: status, Reason: string(reason), LastTransitionTime: since, ObservedGeneration: w.Generation,
		}
		w.Status.Conditions = slices.DeleteFunc(w.Status.Conditions, func(o metav1.Condition) bool { return o.Type == kind })
		w.Status.Conditions = append(w.Status.Conditions, c)
		w.Status.Phase = v1alpha1.WorkspacePhaseOf(w.Status.Conditions)
	}
}

// WorkspaceUID sets the UID: another one under the same name.
func WorkspaceUID(uid types.UID) WorkspaceMod {
	return func(w *v1alpha1.Workspace) { w.UID = uid }
}

// WorkspaceDeleted sets a deletionTimestamp.
func WorkspaceDeleted(at metav1.Time) WorkspaceMod {
	return func(w *v1alpha1.Workspace) { w.DeletionTimestamp = &at }
}
