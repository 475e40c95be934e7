// Package kubevirt plays KubeVirt v1.8 on a cluster that has its CustomResourceDefinitions but not KubeVirt.
//
// A VirtualMachine that is to run becomes
//
//	VirtualMachineInstance  of its name, controlled by it, at once and whatever the disk's state
//	virt-launcher-NAME-x    the launcher pod, controlled by the instance, when the DataVolume has Succeeded; scheduler,
//	                        kubelet and virt-handler are played, too
//
// and runs when the pod does. Statuses, conditions, their order and their texts are those seen on the real KubeVirt, and
// so is what admission adds and refuses (Options.Admission). What the cluster can say by itself it says: a ResourceQuota
// refuses the launcher pod, a pod that runs keeps its claim from going, a missing Secret or NetworkAttachmentDefinition
// holds the guest up, and a guest of more memory than Options.NodeMemory finds no node. All that depends on time is in
// Options; what a cluster cannot be made to do is in Behaviour.
//
// What is not played: migration, hotplug of anything but interfaces, snapshots, instance types, restarts by
// liveness probes, the subresource API of virtctl (status.stateChangeRequests is obeyed), KubeVirt's events, limits that a
// quota of limits.memory brings about, and most of what admission checks of fields that the operators do not set.
//
// VirtualMachineStatus is derived by pure functions of the package objects from what there is, as KubeVirt does.
package kubevirt
